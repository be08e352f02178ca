import type { ImmediateResponse, Outcome, RequestChanges } from '../replies.ts'

const goOnKind = 1
const answerKind = 2
const laterKind = 3
const retireKind = 4
/** Kind and id. */
const headBytes = 5
const countBytes = 2
/** Lengths of a header's name and value. */
const headerBytes = 6
const pairBytes = 8
/** Status, and lengths of details, headers and body. */
const answerBytes = 14
const lengthBytes = 4
/** A length that says: there is no such text. */
const missing = 0xffff_ffff

/** Asks the filter to open other streams for what it has to ask from now on, and to close this one once nothing is owed on it. */
export const retireReply: Buffer = Buffer.from([retireKind, 0, 0, 0, 0])

/** What is decided on a request, or more time for it. */
export type TurnReply = Outcome | { readonly kind: 'extend'; readonly milliseconds: number }

/** A reply on the request `id` as bytes; what accelerator/filter/verdict.ts reads. */
export const encodeTurnReply = (id: number, reply: TurnReply): Buffer => {
  switch (reply.kind) {
    case 'forward':
      return proceed(id, reply.changes)
    case 'respond':
      return answer(id, reply.response)
    case 'extend': {
      const bytes = withHead(laterKind, id, headBytes + lengthBytes)
      bytes.writeUInt32LE(Math.floor(reply.milliseconds), headBytes)
      return bytes
    }
  }
}

const withHead = (kind: number, id: number, length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(length)
  bytes[0] = kind
  bytes.writeUInt32LE(id, 1)
  return bytes
}

/**
 * What the Lua filter is told: where the turn may go, its ticket, the headers of its answer, the model that its body may name, and what is spliced into
 * it. The lengths of all five (32 bits each, little-endian) come first.
 */
const noteOf = ({ destinations, ctx }: RequestChanges): readonly (string | undefined)[] => [
  destinations,
  ctx['turn'],
  ctx['headers'],
  ctx['model'],
  ctx['splice'],
]

const proceed = (id: number, changes: RequestChanges): Buffer => {
  const { setHeaders } = changes
  const names = Object.keys(setHeaders)
  const texts = noteOf(changes)
  let headerLength = 0
  for (const name of names) headerLength += headerBytes + name.length + (setHeaders[name] ?? '').length
  let noteLength = texts.length * lengthBytes
  for (const text of texts) if (typeof text === 'string') noteLength += Buffer.byteLength(text)
  const bytes = withHead(goOnKind, id, headBytes + countBytes + headerLength + noteLength)
  bytes.writeUInt16LE(names.length, headBytes)
  let at = headBytes + countBytes
  for (const name of names) {
    const value = setHeaders[name] ?? ''
    bytes.writeUInt16LE(name.length, at)
    bytes.writeUInt32LE(value.length, at + 2)
    at += headerBytes
    at += bytes.write(name, at, 'latin1')
    at += bytes.write(value, at, 'latin1')
  }
  let lengthAt = at
  at += texts.length * lengthBytes
  for (const text of texts) {
    const length = typeof text === 'string' ? bytes.write(text, at) : 0
    bytes.writeUInt32LE(typeof text === 'string' ? length : missing, lengthAt)
    at += length
    lengthAt += lengthBytes
  }
  return bytes
}

const answer = (id: number, { status, headers, body, details }: ImmediateResponse): Buffer => {
  const names = Object.keys(headers)
  const detailLength = Buffer.byteLength(details)
  let pairsLength = lengthBytes
  for (const name of names) pairsLength += pairBytes + name.length + 1 + (headers[name] ?? '').length + 1
  const bytes = withHead(answerKind, id, headBytes + answerBytes + detailLength + pairsLength + body.length)
  bytes.writeUInt16LE(status, headBytes)
  bytes.writeUInt32LE(detailLength, headBytes + 2)
  bytes.writeUInt32LE(pairsLength, headBytes + 6)
  bytes.writeUInt32LE(body.length, headBytes + 10)
  const detailsAt = headBytes + answerBytes
  const headersAt = detailsAt + bytes.write(details, detailsAt)
  writePairs(bytes, headersAt, headers, names)
  body.copy(bytes, headersAt + pairsLength)
  return bytes
}

/** As proxy-wasm lays headers out: their number, all lengths, then names and values in turn with a zero behind each. */
const writePairs = (
  bytes: Buffer,
  start: number,
  headers: Readonly<Record<string, string>>,
  names: readonly string[],
): void => {
  bytes.writeUInt32LE(names.length, start)
  let lengthAt = start + lengthBytes
  let at = lengthAt + names.length * pairBytes
  for (const name of names) {
    const value = headers[name] ?? ''
    bytes.writeUInt32LE(name.length, lengthAt)
    bytes.writeUInt32LE(value.length, lengthAt + 4)
    lengthAt += pairBytes
    at += bytes.write(name, at, 'latin1')
    bytes[at++] = 0
    at += bytes.write(value, at, 'latin1')
    bytes[at++] = 0
  }
}
