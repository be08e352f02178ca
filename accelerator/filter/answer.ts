// The answer of a turn: it gets the gateway's headers, and its end and its token counts are noted for the access log.

import { contains, find, isDigit, isText } from './bytes'
import { found, readPiece, readWhole, timingsKind, usageKind } from './counts'
import {
  goOn,
  pause,
  proxy_get_buffer_bytes,
  proxy_get_header_map_pairs,
  proxy_replace_header_map_value,
  responseBody,
  responseHeaders,
} from './env'
import { removeResponseHeader } from './headers'
import { findKept, keepText } from './kept'
import { note, streamNote, timingsNote, usageNote } from './notes'
import { begin, mostBodyBytes, result, take, writeText } from './scratch'
import * as turns from './turns'

const newline: u8 = 10

/** The longest of what is looked for in a stream, apart from counts. */
const longestMark: usize = 28

/** Status and headers of a turn's answer come. Returns whether Envoy goes on with them. */
export function takeHeaders(entry: usize, isWhole: bool): i32 {
  if (turns.stateOf(entry) !== turns.wentOn) return goOn
  begin(0)
  turns.setState(entry, turns.passing)
  if (!findKept(entry)) return goOn
  let start = <usize>load<u32>(result)
  const end = start + <usize>load<u32>(result, 4)
  if (proxy_get_header_map_pairs(responseHeaders, result, result + 4) !== 0) return goOn
  const headers = <usize>load<u32>(result)
  const isAnswered = findHeader(headers, ':status') && load<u8>(<usize>load<u32>(result)) === 50
  if (!isAnswered) start = end
  // Only the gateway says which session an answer belongs to.
  if (!contains(start, end, 'x-session-id:')) removeHeader(headers, 'x-session-id')
  if (!contains(start, end, 'x-context-cache:')) removeHeader(headers, 'x-context-cache')
  if (!isAnswered) return goOn
  setHeaders(start, end)
  return beginBody(entry, headers, isWhole)
}

/** A piece of the body comes; of one that is held, all of it. Returns whether Envoy goes on with it. */
export function takeBody(entry: usize, isLast: bool): i32 {
  const state = turns.stateOf(entry)
  begin(0)
  if (state === turns.streaming) {
    if (findKept(entry)) takePiece(entry, <usize>load<u32>(result), <usize>load<u32>(result, 4))
    return goOn
  }
  if (state !== turns.holding) return goOn
  // Held until it is whole, so that one which stops short becomes an error.
  if (!isLast) return pause
  if (getBody()) readWhole(<usize>load<u32>(result), <usize>load<u32>(result) + <usize>load<u32>(result, 4))
  noteCounts(entry)
  return goOn
}

function beginBody(entry: usize, headers: usize, isWhole: bool): i32 {
  if (!findHeader(headers, 'content-type')) return goOn
  const type = <usize>load<u32>(result)
  const end = type + <usize>load<u32>(result, 4)
  if (contains(type, end, 'text/event-stream')) {
    noteStream(entry, 'cut')
    // A first line is one like all others.
    const line = take(1)
    store<u8>(line, newline)
    keepText(entry, line, 1)
    turns.setState(entry, turns.streaming)
    return goOn
  }
  const json = 'application/json'
  const behind = type + json.length
  if (find(type, end, json) !== type || (behind < end && load<u8>(behind) !== 59)) return goOn
  // One that no buffer would hold passes as it is.
  if (isWhole || contentLength(headers) > mostBodyBytes) return goOn
  turns.setState(entry, turns.holding)
  return pause
}

function contentLength(headers: usize): u64 {
  if (!findHeader(headers, 'content-length')) return 0
  let length: u64 = 0
  const end = <usize>load<u32>(result) + <usize>load<u32>(result, 4)
  for (let at = <usize>load<u32>(result); at < end && isDigit(load<u8>(at)) && length <= mostBodyBytes; at++)
    length = length * 10 + (load<u8>(at) - 48)
  return length
}

function takePiece(entry: usize, tail: usize, tailLength: usize): void {
  // What is left of the last piece, and right behind it this one: one text. (Both stand in memory that is free again.)
  const start = begin(tailLength)
  memory.copy(start, tail, tailLength)
  const wasLine = tailLength === 1 && load<u8>(start) === newline
  if (!getBody()) return
  const end = start + tailLength + <usize>load<u32>(result, 4)
  const namesEvent = contains(start, end, '\ne')
  // Most pieces hold a token and nothing else, which a few searches for what is rare in them tell.
  if ((namesEvent || contains(start, end, '[DONE]')) && hasLastEvent(start, end)) noteStream(entry, 'done')
  if ((namesEvent || contains(start, end, '{"e')) && hasError(start, end)) failStream(entry)
  const cut = readPiece(start, end)
  noteCounts(entry)
  const isLine = cut === end && load<u8>(end - 1) === newline
  // Nothing that is looked for goes on behind the end of a line.
  if (isLine && wasLine) return
  let from = isLine ? end - 1 : end - start > longestMark ? end - longestMark - 1 : start
  if (cut < from) from = cut
  keepText(entry, from, <i32>(end - from))
}

/** Notes how a stream stands. One that failed stays so, whatever else comes. */
function noteStream(entry: usize, state: string): void {
  if (turns.isFailed(entry)) return
  const text = take(16)
  note(entry, streamNote, text, writeText(state, text))
}

function failStream(entry: usize): void {
  noteStream(entry, 'failed')
  turns.setFailed(entry)
}

function noteCounts(entry: usize): void {
  const usage = <usize>load<u32>(found + 8 * usageKind)
  if (usage !== 0) note(entry, usageNote, usage, <usize>load<u32>(found + 8 * usageKind, 4))
  const timings = <usize>load<u32>(found + 8 * timingsKind)
  if (timings !== 0) note(entry, timingsNote, timings, <usize>load<u32>(found + 8 * timingsKind, 4))
}

function hasLastEvent(start: usize, end: usize): bool {
  return (
    contains(start, end, '\ndata: [DONE]') ||
    contains(start, end, '\ndata:[DONE]') ||
    contains(start, end, '\nevent: response.completed') ||
    contains(start, end, '\nevent: response.incomplete')
  )
}

function hasError(start: usize, end: usize): bool {
  return (
    contains(start, end, '\ndata: {"error"') ||
    contains(start, end, '\ndata:{"error"') ||
    contains(start, end, '\nevent: error') ||
    contains(start, end, '\nevent: response.failed') ||
    contains(start, end, '\nerror:')
  )
}

function getBody(): bool {
  return proxy_get_buffer_bytes(responseBody, 0, i32.MAX_VALUE, result, result + 4) === 0
}

/** Finds a header among those that Envoy handed over: `result` says where its value is then. False when there is none. */
function findHeader(headers: usize, header: string): bool {
  const count = load<u32>(headers)
  let lengths = headers + 4
  let at = lengths + <usize>count * 8
  for (let index: u32 = 0; index < count; index++) {
    const nameLength = load<u32>(lengths)
    const valueLength = load<u32>(lengths, 4)
    const value = at + nameLength + 1
    if (nameLength === <u32>header.length && isText(at, header)) {
      store<u32>(result, <u32>value)
      store<u32>(result, valueLength, 4)
      return true
    }
    at = value + valueLength + 1
    lengths += 8
  }
  return false
}

function removeHeader(headers: usize, header: string): void {
  if (findHeader(headers, header)) removeResponseHeader(header)
}

/** Sets the headers of lines `name:value`. */
function setHeaders(start: usize, end: usize): void {
  let at = start
  while (at < end) {
    const colonAt = find(at, end, ':')
    const stop = find(at, end, '\n')
    if (colonAt >= stop) return
    proxy_replace_header_map_value(responseHeaders, at, <i32>(colonAt - at), colonAt + 1, <i32>(stop - colonAt - 1))
    at = stop + 1
  }
}
