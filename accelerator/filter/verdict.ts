// What the gateway says of a turn, done. A message is its kind, the request's id, and then by kind (numbers little-endian):
// 1, go on: u16 headers, for each u16 and u32 lengths of name and value and both texts; then the note.
// 2, answer: u16 status, u32 lengths of details, headers (as Envoy writes maps of them) and body; then these.
// 3, later: u32 milliseconds. 4, ask on other streams from now on.
// A note is the u32 lengths of five texts, all ones for one that is not there, and these: where the turn may go, its ticket, the headers of its
// answer, the model that its body may name, and what is spliced into its body.

import { editBody } from './body'
import {
  noGrpcStatus,
  proxy_replace_header_map_value,
  proxy_send_local_response,
  proxy_set_effective_context,
  requestHeaders,
} from './env'
import { setRequestHeader } from './headers'
import { keepText } from './kept'
import { getProperty, setProperty } from './properties'
import { result } from './scratch'
import * as turns from './turns'

export const goOnKind: u8 = 1
export const answerKind: u8 = 2
export const laterKind: u8 = 3
export const retireKind: u8 = 4
/** Kind and id. */
export const headBytes: i32 = 5

const noteHeadBytes: usize = 20
const lengthBytes: usize = 4

/** What becomes of a request by its verdict. */
export const malformed: i32 = 0
export const ready: i32 = 1
/** It is answered, or gone: nothing is to be done any more. */
export const refused: i32 = 2
export const wantsBody: i32 = 3

/**
 * Does what the message from `at` to `end` says of a request that goes on. `malformed`: it cannot be read, and nothing was done. `wantsBody`: the rest is to be
 * done by `finishWithBody`, once the body is there.
 */
export function goOnAsTold(entry: usize, message: usize, end: usize): i32 {
  let at = message + headBytes
  if (at + 2 > end) return malformed
  const headers = load<u16>(at)
  at += 2
  const first = at
  for (let index: u16 = 0; index < headers; index++) {
    if (at + 6 > end) return malformed
    const length = <u64>load<u16>(at) + <u64>load<u32>(at, 2) + 6
    if (length > <u64>(end - at)) return malformed
    at += <usize>length
  }
  if (!isNote(at, end)) return malformed
  if (proxy_set_effective_context(turns.idOf(entry)) !== 0) return refused
  turns.decide(entry)
  setHeaders(first, headers)
  return takeNote(entry, at, <i32>(end - at))
}

/** Does the rest for a request whose body is there, and whose context is in effect. */
export function finishWithBody(): i32 {
  if (!getProperty('note')) return ready
  const at = <usize>load<u32>(result)
  return edit(at) ? ready : refused
}

function setHeaders(at: usize, count: u16): void {
  for (let index: u16 = 0; index < count; index++) {
    const nameLength = <i32>load<u16>(at)
    const valueLength = load<i32>(at, 2)
    proxy_replace_header_map_value(requestHeaders, at + 6, nameLength, at + 6 + nameLength, valueLength)
    at += 6 + nameLength + valueLength
  }
}

/** How long a text of a note is; -1 where there is none. */
function lengthOf(at: usize, index: usize): i32 {
  return load<i32>(at + index * lengthBytes)
}

/** Where a text of a note stands. */
function textOf(at: usize, index: usize): usize {
  let text = at + noteHeadBytes
  for (let before: usize = 0; before < index; before++) {
    const length = lengthOf(at, before)
    if (length > 0) text += length
  }
  return text
}

function isNote(at: usize, end: usize): bool {
  if (at + noteHeadBytes > end) return false
  let length: u64 = noteHeadBytes
  for (let index: usize = 0; index < 5; index++) {
    const own = load<u32>(at + index * lengthBytes)
    if (own !== u32.MAX_VALUE) length += own
  }
  return length === <u64>(end - at)
}

function takeNote(entry: usize, at: usize, length: i32): i32 {
  // The header of a turn also says that it is to be logged.
  if (lengthOf(at, 0) >= 0) setRequestHeader('x-gateway-destination-endpoint', textOf(at, 0), lengthOf(at, 0))
  if (lengthOf(at, 1) >= 0) {
    setProperty('turn', textOf(at, 1), lengthOf(at, 1))
    turns.setTicket(entry)
    keepText(entry, textOf(at, 2), max(lengthOf(at, 2), 0))
  }
  if (lengthOf(at, 3) < 0 && lengthOf(at, 4) < 0) return ready
  if (turns.isBodyThere(entry)) return edit(at) ? ready : refused
  setProperty('note', at, length)
  return wantsBody
}

function edit(at: usize): bool {
  return editBody(textOf(at, 3), lengthOf(at, 3), textOf(at, 4), lengthOf(at, 4))
}

/** Answers a request by itself; `malformed`, and nothing done, when the message cannot be read. */
export function answerAsTold(entry: usize, message: usize, end: usize): i32 {
  const at = message + headBytes
  if (at + 14 > end) return malformed
  const details = load<u32>(at, 2)
  const headers = load<u32>(at, 6)
  const body = load<u32>(at, 10)
  const start = at + 14
  if (<u64>details + <u64>headers + <u64>body !== <u64>(end - start)) return malformed
  if (proxy_set_effective_context(turns.idOf(entry)) !== 0) return refused
  proxy_send_local_response(
    load<u16>(at),
    start,
    details,
    start + details + headers,
    body,
    start + details,
    headers,
    noGrpcStatus,
  )
  return refused
}
