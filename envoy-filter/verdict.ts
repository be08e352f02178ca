// What the gateway says of a turn, done. A message is its kind, the request's id, and then by kind (numbers little-endian):
// 1, go on: u16 headers, for each u16 and u32 lengths of name and value and both texts; the rest is the note for the Lua filter.
// 2, answer: u16 status, u32 lengths of details, headers (as Envoy writes maps of them) and body; then these.
// 3, later: u32 milliseconds. 4, ask on other streams from now on.

import {
  noGrpcStatus,
  proxy_continue_stream,
  proxy_replace_header_map_value,
  proxy_send_local_response,
  proxy_set_effective_context,
  proxy_set_property,
  requestHeaders,
  requestSide,
} from './env'
import { writeText } from './scratch'

export const goOnKind: u8 = 1
export const answerKind: u8 = 2
export const laterKind: u8 = 3
export const retireKind: u8 = 4
/** Kind and id. */
export const headBytes: i32 = 5

const property: usize = memory.data(8)
const propertyLength: i32 = writeText('ctx', property)

/** Lets a request go on, as the message from `at` to `end` says. False, and nothing done, when it says nothing that can be read. */
export function goOnAsTold(id: u32, message: usize, end: usize): bool {
  let at = message + headBytes
  if (at + 2 > end) return false
  const headers = load<u16>(at)
  at += 2
  const first = at
  for (let index: u16 = 0; index < headers; index++) {
    if (at + 6 > end) return false
    const length = <u64>load<u16>(at) + <u64>load<u32>(at, 2) + 6
    if (length > <u64>(end - at)) return false
    at += <usize>length
  }
  if (proxy_set_effective_context(id) !== 0) return true
  let header = first
  for (let index: u16 = 0; index < headers; index++) {
    const nameLength = <i32>load<u16>(header)
    const valueLength = load<i32>(header, 2)
    proxy_replace_header_map_value(requestHeaders, header + 6, nameLength, header + 6 + nameLength, valueLength)
    header += 6 + nameLength + valueLength
  }
  if (at < end) proxy_set_property(property, propertyLength, at, <i32>(end - at))
  proxy_continue_stream(requestSide)
  return true
}

/** Answers a request by itself. False, and nothing done, when the message cannot be read. */
export function answerAsTold(id: u32, message: usize, end: usize): bool {
  const at = message + headBytes
  if (at + 14 > end) return false
  const details = load<u32>(at, 2)
  const headers = load<u32>(at, 6)
  const body = load<u32>(at, 10)
  const start = at + 14
  if (<u64>details + <u64>headers + <u64>body !== <u64>(end - start)) return false
  if (proxy_set_effective_context(id) !== 0) return true
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
  return true
}
