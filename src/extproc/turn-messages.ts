import type { GatewayRequest } from '../context/context-cache-manager.ts'
import { loadProtoMethod } from '../protobuf/load-proto-method.ts'
import type { Outcome } from './replies.ts'

/** A request that the accelerator asks about. `id` names it on its stream. */
export interface TurnAsk {
  readonly id: number
  readonly request: GatewayRequest
}

/** A message of the accelerator, `TurnsRequest` in protos/turns.proto. */
export interface TurnsRequest {
  readonly asks: readonly TurnAsk[]
  /** Ids of turns whose decision is no longer awaited. */
  readonly cancels: readonly number[]
}

/** What is to be done with a request, or (`extend_milliseconds`) that the decision takes longer. */
export type TurnDecision =
  | ReturnType<typeof toTurnDecision>
  | { readonly id: number; readonly extend_milliseconds: number }

/** The gateway's message, `TurnsReply` in protos/turns.proto. */
export interface TurnsReply {
  readonly decisions: readonly TurnDecision[]
  /** The accelerator asks on another stream, and closes this one after the last pending decision. */
  readonly retire: boolean
}

/** Bytes of the accelerator to a message, and a message to its bytes, by protos/turns.proto. */
export const createTurnsCodec = () => {
  const wire = loadProtoMethod('turns.proto', 'contextcache.turns.v1.Turns', 'Decide')
  return {
    path: wire.path,
    /** @throws Error on what is no such message */
    decode: (bytes: Buffer): TurnsRequest => {
      const { asks = [], cancels = [] } = wire.decodeRequest(bytes) as DecodedRequest
      return { asks: asks.map(toAsk), cancels }
    },
    encode: (reply: TurnsReply): Buffer => wire.encodeResponse(reply),
  }
}

/** Fields that were not sent are missing. */
interface DecodedRequest {
  readonly asks?: readonly { readonly id?: number; readonly headers?: Buffer }[]
  readonly cancels?: readonly number[]
}

const toAsk = ({ id = 0, headers = Buffer.alloc(0) }: NonNullable<DecodedRequest['asks']>[number]): TurnAsk => {
  const header = createHeaderMapLookup(headers)
  return {
    id,
    request: {
      method: header(':method')[0] ?? '',
      path: header(':path')[0] ?? '',
      header,
      // The route sends only requests with a body to the accelerator, which keeps the body.
      endOfStream: false,
      bodyReadable: false,
    },
  }
}

/** A decision on the request `id` as the accelerator carries it out. */
export const toTurnDecision = (id: number, outcome: Outcome) => {
  if (outcome.kind === 'respond') {
    const { status, details, headers, body } = outcome
    return { id, answer: { status, details, headers: encodeHeaderMap(headers), body } }
  }
  const { setHeaders, destinations, ctx } = outcome
  const { turn = '', headers, model = '', splice = '' } = ctx
  return {
    id,
    forward: {
      // Envoy's header_to_metadata filter turns these into the dynamic metadata that ext_proc sets by itself.
      headers: encodeHeaderMap({
        ...setHeaders,
        ...(destinations === undefined ? {} : { 'x-context-turn-pods': destinations }),
        ...(turn === '' ? {} : { 'x-context-turn-begun': '1' }),
        // A header value has no line breaks.
        ...(headers === undefined ? {} : { 'x-context-turn-headers': Buffer.from(headers).toString('base64') }),
      }),
      model: isPlain(model) ? model : '',
      splice,
      // Not a header: header_to_metadata ignores values of more than 8 KB.
      ticket: turn,
    },
  }
}

/** A name that JSON writes with escapes cannot be compared with the body's text: the engine checks it. */
const isPlain = (model: string): boolean => JSON.stringify(model) === `"${model}"`

const countBytes = 4
/** Two lengths of 32 bits, little-endian. */
const lengthsBytes = 8

/**
 * Headers by name, values as latin1. proxy-wasm serializes a header map as the number of headers, then the lengths of
 * each name and value, then all of them, each with a zero behind it. @throws Error on bytes that are no header map
 */
export const createHeaderMapLookup = (bytes: Buffer): GatewayRequest['header'] => {
  const spans = readSpans(bytes)
  return (name) =>
    spans
      .filter(
        ({ start, nameEnd }) => nameEnd - start === name.length && bytes.toString('latin1', start, nameEnd) === name,
      )
      .map(({ nameEnd, valueEnd }) => bytes.toString('latin1', nameEnd + 1, valueEnd))
}

interface HeaderSpan {
  readonly start: number
  readonly nameEnd: number
  readonly valueEnd: number
}

const readSpans = (bytes: Buffer): readonly HeaderSpan[] => {
  const count = bytes.length < countBytes ? Number.NaN : bytes.readUInt32LE(0)
  let start = countBytes + count * lengthsBytes
  if (!(start <= bytes.length)) throw new Error('not a header map')
  const spans: HeaderSpan[] = []
  for (let lengthsAt = countBytes; spans.length < count; lengthsAt += lengthsBytes) {
    const nameEnd = start + bytes.readUInt32LE(lengthsAt)
    const valueEnd = nameEnd + 1 + bytes.readUInt32LE(lengthsAt + countBytes)
    if (valueEnd >= bytes.length) throw new Error('not a header map')
    spans.push({ start, nameEnd, valueEnd })
    start = valueEnd + 1
  }
  return spans
}

const encodeHeaderMap = (headers: Readonly<Record<string, string>>): Buffer => {
  const entries = Object.entries(headers)
  const texts = entries.map(([name, value]) => `${name}\0${value}\0`).join('')
  const start = countBytes + entries.length * lengthsBytes
  const bytes = Buffer.allocUnsafe(start + texts.length)
  bytes.writeUInt32LE(entries.length, 0)
  for (const [index, [name, value]] of entries.entries()) {
    bytes.writeUInt32LE(name.length, countBytes + index * lengthsBytes)
    bytes.writeUInt32LE(value.length, countBytes + index * lengthsBytes + countBytes)
  }
  bytes.write(texts, start, 'latin1')
  return bytes
}
