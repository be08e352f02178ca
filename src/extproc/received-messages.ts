import type { Readable } from 'node:stream'

/** Between two messages. */
const noData = 0
const nothing = Buffer.alloc(0)

/** What grpc-js puts messages of a stream together from. */
interface Decoder {
  readonly readState: number
  /** Pieces of the message that arrives, or of the last one. */
  readPartialMessage: readonly Buffer[]
  /** Its first byte, a view of all that came with it. */
  readCompressFlag: Buffer
}

/**
 * Releases what each message of a stream came in. grpc-js 1.14 keeps it, in a private field, until the next message
 * begins: a request that waits for its decision would hold its body, whoever is done with it. Throws if it has no such
 * field any more.
 */
export const forgetReceived = (duplex: Readable): void => {
  const decoder: unknown = Reflect.get(Object(Reflect.get(duplex, 'call')), 'decoder')
  if (!isDecoder(decoder)) throw new Error('@grpc/grpc-js has no readPartialMessage')
  duplex.on('data', () => {
    if (decoder.readState !== noData) return
    decoder.readPartialMessage = []
    decoder.readCompressFlag = nothing
  })
}

const isDecoder = (value: unknown): value is Decoder =>
  typeof value === 'object' && value !== null && 'readState' in value && 'readPartialMessage' in value
