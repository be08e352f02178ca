// What Envoy keeps of a request for this filter, and for the access log.

import { isText } from './bytes'
import { proxy_get_property, proxy_set_property } from './env'
import { result, take, writeText } from './scratch'

/** Between the notes on an answer; stands in no JSON text. */
const separator: u8 = 0x1e
const nothing: u8 = 45
const name: usize = memory.data(16)

/** The notes that envoy.yaml logs, in their order. */
export const streamNote: i32 = 0
export const usageNote: i32 = 1
export const timingsNote: i32 = 2
const notes: i32 = 3

/** Reads a property of the request whose context is in effect: `result` says where it is then. False when it has none. */
export function getProperty(property: string): bool {
  return proxy_get_property(name, writeText(property, name), result, result + 4) === 0
}

export function setProperty(property: string, value: usize, length: usize): void {
  proxy_set_property(name, writeText(property, name), value, <i32>length)
}

/** Notes a text on an answer, in place of an earlier one. */
export function note(index: i32, text: usize, length: usize): void {
  const isThere = getProperty('notes')
  let at = isThere ? <usize>load<u32>(result) : 0
  const end = isThere ? at + <usize>load<u32>(result, 4) : 0
  const all = take(end - at + length + 8)
  let to = all
  for (let place = 0; place < notes; place++) {
    if (place > 0) store<u8>(to++, separator)
    const stop = partEnd(at, end)
    if (place === index) {
      memory.copy(to, text, length)
      to += length
    } else if (stop > at) {
      memory.copy(to, at, stop - at)
      to += stop - at
    } else store<u8>(to++, nothing)
    at = stop < end ? stop + 1 : end
  }
  setProperty('notes', all, to - all)
}

function partEnd(at: usize, end: usize): usize {
  while (at < end && load<u8>(at) !== separator) at++
  return at
}

/** Notes how a stream stands. One that failed stays so, whatever else comes. */
export function noteStream(state: string): void {
  const failed = 'failed'
  if (getProperty('notes') && load<u32>(result, 4) >= <u32>failed.length && isText(<usize>load<u32>(result), failed))
    return
  const text = take(16)
  note(streamNote, text, writeText(state, text))
}
