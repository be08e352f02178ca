// What the access log is told of a turn's answer, as one property of the request.

import { getProperty, setProperty } from './properties'
import { result, take } from './scratch'
import { hasNotes, setNoted } from './turns'

/** Between the notes; stands in no JSON text. */
const separator: u8 = 0x1e
const nothing: u8 = 45

/** The notes in their order. */
export const streamNote: i32 = 0
export const usageNote: i32 = 1
export const timingsNote: i32 = 2
const notes: i32 = 3

/** Notes a text on the answer of the turn whose context is in effect, in place of an earlier one. */
export function note(entry: usize, index: i32, text: usize, length: usize): void {
  const isThere = hasNotes(entry) && getProperty('notes')
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
  setNoted(entry)
}

function partEnd(at: usize, end: usize): usize {
  while (at < end && load<u8>(at) !== separator) at++
  return at
}
