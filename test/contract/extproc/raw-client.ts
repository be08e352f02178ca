import { once } from 'node:events'
import { Client, type ClientDuplexStream, credentials, type StatusObject } from '@grpc/grpc-js'
import type { ListenAddress } from '../../../src/extproc/listener.ts'

/** A gRPC client that moves bytes, so that a test says what is on the wire. */
export interface RawClient {
  call(path: string): RawCall
  close(): void
}

export interface RawCall {
  readonly stream: ClientDuplexStream<Buffer, Buffer>
  /** Messages so far. */
  readonly received: readonly Buffer[]
  /** Resolves with the status that the call ends with. */
  readonly status: Promise<StatusObject>
  /** Resolves once `count` messages have come. Rejects when the call ends before. */
  messages(count: number): Promise<readonly Buffer[]>
}

const unlimited = 64 * 1024 * 1024

const target = (address: ListenAddress): string =>
  'socketPath' in address ? `unix:${address.socketPath}` : `${address.host}:${address.port}`

/** Connects when the first call is made; all calls share the connection. */
export const createRawClient = (address: ListenAddress): RawClient => {
  const client = new Client(target(address), credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_send_message_length': unlimited,
    'grpc.max_receive_message_length': unlimited,
  })
  return {
    call: (path) => openCall(client, path),
    close: () => client.close(),
  }
}

const openCall = (client: Client, path: string): RawCall => {
  const identity = (bytes: Buffer): Buffer => bytes
  const stream = client.makeBidiStreamRequest<Buffer, Buffer>(path, identity, identity)
  const received: Buffer[] = []
  const status = new Promise<StatusObject>((resolve) => {
    stream.once('status', resolve)
  })
  stream.on('error', () => {})
  stream.on('data', (message: Buffer) => received.push(message))
  return {
    stream,
    received,
    status,
    messages: async (count) => {
      while (received.length < count) {
        const ended = await Promise.race([status, once(stream, 'data').then(() => undefined)])
        if (ended !== undefined && received.length < count) {
          throw new Error(`the call ended with ${ended.code} ${ended.details} after ${received.length} messages`)
        }
      }
      return received
    },
  }
}
