// The request's body: the members that the gateway adds are appended to its object. Of members with one name the last
// one counts in every engine's parser. A body that may have to be refused is left to the Lua filter, which receives
// model and members for it (deploy/envoy/context-cache.lua).

import { closeBrace, colon, comma, dropBlanks, find, openBrace, quote, skipBlanks } from './bytes'
import { proxy_set_buffer_bytes, requestBody } from './env'
import { setRequestHeader } from './headers'
import { readBuffer, result, take, writeDecimal } from './scratch'

/**
 * Appends `splice` to the body of the request whose context is in effect, if the body names no other model. Lengths of
 * 0: any model, nothing to append.
 */
export function spliceBody(model: usize, modelLength: i32, splice: usize, spliceLength: i32): void {
  if (!readBuffer(requestBody)) return
  const start = <usize>load<u32>(result)
  const length = <usize>load<u32>(result, 4)
  const open = skipBlanks(start, start + length)
  const end = dropBlanks(open, start + length)
  const isObject = end - open >= 2 && load<u8>(open) === openBrace && load<u8>(end - 1) === closeBrace
  if (!isObject || (modelLength > 0 && !namesModel(open, end, model, modelLength))) {
    leaveBody(model, modelLength, splice, spliceLength)
    return
  }
  if (spliceLength === 0) return
  const isEmpty = skipBlanks(open + 1, end - 1) === end - 1
  const whole = take(end - start + <usize>spliceLength + 2)
  memory.copy(whole, start, end - 1 - start)
  let at = whole + (end - 1 - start)
  if (!isEmpty) store<u8>(at++, comma)
  memory.copy(at, splice, spliceLength)
  at += spliceLength
  store<u8>(at++, closeBrace)
  proxy_set_buffer_bytes(requestBody, 0, <i32>length, whole, <i32>(at - whole))
  const value = take(16)
  setRequestHeader('content-length', value, writeDecimal(<u32>(at - whole), value))
}

/** Leaves the body to the Lua file. */
export function leaveBody(model: usize, modelLength: i32, splice: usize, spliceLength: i32): void {
  if (modelLength > 0) setRequestHeader('x-context-turn-model', model, modelLength)
  if (spliceLength > 0) setRequestHeader('x-context-turn-splice', splice, spliceLength)
}

/** Whether a member "model" is the expected one, or there is none. False for what the Lua filter has to look at. */
function namesModel(start: usize, end: usize, model: usize, modelLength: i32): bool {
  const key = '"model"'
  let at = find(start, end, key)
  if (at >= end) return true
  for (; at < end; at = find(at + 1, end, key)) {
    const behind = skipBlanks(at + key.length, end)
    if (behind >= end || load<u8>(behind) !== colon) continue
    const value = skipBlanks(behind + 1, end)
    const stop = value + 1 + <usize>modelLength
    if (stop >= end || load<u8>(value) !== quote || load<u8>(stop) !== quote) continue
    if (memory.compare(value + 1, model, modelLength) === 0) return true
  }
  return false
}
