import { answerModeOf, bodyModes } from '../body-modes.ts'
import type { HeaderLookup } from '../header-lookup.ts'
import type { AnswerMode, BodyMode, ExtProcEvent } from '../messages.ts'
import { createTableLookup, readHeaderMap } from './header-table.ts'
import { WireReader } from './wire-reader.ts'

const requestHeadersTag = 2 * 8 + 2
const responseHeadersTag = 3 * 8 + 2
const requestBodyTag = 4 * 8 + 2
const responseBodyTag = 5 * 8 + 2
const requestTrailersTag = 6 * 8 + 2
const responseTrailersTag = 7 * 8 + 2
const protocolConfigTag = 11 * 8 + 2

const emptyBody = Buffer.alloc(0)

const requestTrailers: ExtProcEvent = { kind: 'request-trailers' }
const responseTrailers: ExtProcEvent = { kind: 'response-trailers' }
const unknown: ExtProcEvent = { kind: 'unknown' }

interface Config {
  readonly bodyMode: BodyMode
  readonly answerMode: AnswerMode
}

const noConfig: Config = { bodyMode: 'unknown', answerMode: 'unknown' }

/**
 * A ProcessingRequest as an event: the last phase in it counts, fields that are not used are passed over, and headers
 * stay where they are until they are asked for. Throws a CodecError on what is no such message.
 */
export const decodeProcessingRequest = (bytes: Buffer): ExtProcEvent => {
  const reader = new WireReader(bytes)
  let event: ExtProcEvent = unknown
  let config = noConfig
  while (reader.more) {
    const tag = reader.tag()
    switch (tag) {
      case requestHeadersTag:
        event = toRequestHeaders(readHeaders(reader, bytes))
        break
      case requestBodyTag:
        event = { kind: 'request-body', ...readBody(reader) }
        break
      case responseHeadersTag:
        event = { kind: 'response-headers', ...readHeaders(reader, bytes) }
        break
      case responseBodyTag:
        event = { kind: 'response-body', ...readBody(reader) }
        break
      case requestTrailersTag:
        event = passOver(reader, requestTrailers)
        break
      case responseTrailersTag:
        event = passOver(reader, responseTrailers)
        break
      case protocolConfigTag:
        config = readConfig(reader)
        break
      default:
        reader.skip(tag)
    }
  }
  if (event.kind !== 'request-headers') return event
  const { headers, endOfStream } = event
  return { kind: 'request-headers', headers, endOfStream, bodyMode: config.bodyMode, answerMode: config.answerMode }
}

/** The content of these messages is not looked at. */
const passOver = (reader: WireReader, event: ExtProcEvent): ExtProcEvent => {
  reader.span()
  return event
}

const toRequestHeaders = ({ headers, endOfStream }: Headers): ExtProcEvent => ({
  kind: 'request-headers',
  headers,
  endOfStream,
  bodyMode: 'unknown',
  answerMode: 'unknown',
})

interface Headers {
  readonly headers: HeaderLookup
  readonly endOfStream: boolean
}

const readHeaders = (reader: WireReader, bytes: Buffer): Headers => {
  const offsets: number[] = []
  let endOfStream = false
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) {
      const message = reader.enter()
      readHeaderMap(reader, offsets)
      reader.leave(message)
    } else if (tag === 3 * 8) endOfStream = reader.bool()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { headers: createTableLookup(bytes, offsets), endOfStream }
}

const readBody = (reader: WireReader): { readonly body: Buffer; readonly endOfStream: boolean } => {
  let body: Buffer = emptyBody
  let endOfStream = false
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) body = reader.view()
    else if (tag === 2 * 8) endOfStream = reader.bool()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { body, endOfStream }
}

const readConfig = (reader: WireReader): Config => {
  let requestMode = 0
  let responseMode = 0
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8) requestMode = reader.int32()
    else if (tag === 2 * 8) responseMode = reader.int32()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { bodyMode: bodyModes[requestMode] ?? 'unknown', answerMode: answerModeOf(responseMode) }
}
