import { createHeaderLookup, type HeaderLookup, type WireHeader } from '../codec.ts'

/** A request that the filter asks about; it keeps bodies to itself. */
export interface TurnRequest {
  readonly headers: HeaderLookup
  /** No body follows. */
  readonly endOfStream: boolean
  readonly bodyMode: 'none'
}

/** What Envoy's filter for turns says on its stream (accelerator/filter/filter.ts). `id` names the request on this stream. */
export type TurnMessage =
  /** What is to be done with a request? */
  | {
      readonly kind: 'ask'
      readonly id: number
      readonly request: TurnRequest
    }
  /** Nobody waits for this request's verdict any more. */
  | { readonly kind: 'left'; readonly id: number }

const askKind = 1
const leftKind = 2
/** Kind and id. */
const headBytes = 5
const askBytes = headBytes + 1
const countBytes = 4
/** Lengths of a header's name and value. */
const pairBytes = 8

/**
 * Reads a message: a byte for its kind, the request's id (32 bits, little-endian), and to ask a byte for whether the request has no body, and the
 * request's headers as proxy-wasm lays them out. @throws Error on what is no such message
 */
export const decodeTurnMessage = (bytes: Buffer): TurnMessage => {
  const kind = bytes[0]
  if (bytes.length < headBytes || (kind === askKind && bytes.length < askBytes + countBytes)) throw malformed()
  const id = bytes.readUInt32LE(1)
  if (kind === leftKind) return { kind: 'left', id }
  if (kind !== askKind) throw malformed()
  return {
    kind: 'ask',
    id,
    request: {
      headers: createHeaderLookup(headersIn(bytes, askBytes)),
      endOfStream: bytes[headBytes] !== 0,
      bodyMode: 'none',
    },
  }
}

/**
 * Where names and values lie: their number, the lengths of every name and value (32 bits each), and then all of them in turn, each with a zero behind it.
 * (https://github.com/proxy-wasm/spec, "Serialization".)
 */
const headersIn = (bytes: Buffer, start: number): readonly WireHeader[] => {
  const count = bytes.readUInt32LE(start)
  let lengthAt = start + countBytes
  let at = lengthAt + count * pairBytes
  if (at > bytes.length) throw malformed()
  const headers: WireHeader[] = []
  for (let index = 0; index < count; index++) {
    const nameEnd = at + bytes.readUInt32LE(lengthAt)
    const valueEnd = nameEnd + 1 + bytes.readUInt32LE(lengthAt + 4)
    if (valueEnd >= bytes.length) throw malformed()
    headers.push({ key: bytes.toString('latin1', at, nameEnd), raw_value: bytes.subarray(nameEnd + 1, valueEnd) })
    at = valueEnd + 1
    lengthAt += pairBytes
  }
  return headers
}

const malformed = (): Error => new Error('not a message of the filter for turns')
