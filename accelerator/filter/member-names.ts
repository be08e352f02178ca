// Which names of members a JSON text may hold, by one look through it.

import { backslash, colon, dropBlanks, findEither, isText, quote, skipBlanks } from './bytes'
import { levelOf, stringEnd } from './json-text'
import { take } from './scratch'

/** Some member "model" may be another than the expected one. */
export const otherModel: i32 = 1
/** Some member may have one of the spliced names. */
export const splicedName: i32 = 2

const mostNames: u32 = 8

/**
 * Looks through the object from `start` to `end`. Names stand ahead of colons, which are rare in prompts; and they may be written with escapes, with
 * which a name may be any.
 */
export function lookForNames(start: usize, end: usize, model: usize, modelLength: i32, names: usize): i32 {
  let seen = 0
  for (let at = nextColon(start, end); at < end; at = nextColon(at + 1, end)) {
    const stop = dropBlanks(start, at)
    // A quote with a backslash is within a string, or ends a name with a backslash at its end, which none of these has.
    if (stop - start < 3 || load<u8>(stop - 1) !== quote || load<u8>(stop - 2) === backslash) continue
    if (hasEscape(start, stop - 1)) return otherModel | splicedName
    if (modelLength >= 0 && isOtherModel(start, stop, at + 1, end, model, modelLength)) seen |= otherModel
    if (hasName(start, stop - 1, names)) seen |= splicedName
  }
  return seen
}

/** The names of the members from `start` to `end`, which are without braces: their number, and for each where it stands and how long it is. */
export function namesOf(start: usize, end: usize): usize {
  const names = take(4 + mostNames * 8)
  store<u32>(names, 0)
  let level = 0
  for (let at = start; at < end; at++) {
    const mark = load<u8>(at)
    if (mark !== quote) {
      level += levelOf(mark)
      continue
    }
    const stop = stringEnd(at + 1, end)
    if (stop >= end) break
    const behind = skipBlanks(stop + 1, end)
    if (level === 0 && behind < end && load<u8>(behind) === colon) addName(names, at + 1, stop)
    at = stop
  }
  return names
}

/** One more than there is room for is not kept, but counted. */
function addName(names: usize, start: usize, end: usize): void {
  const count = load<u32>(names)
  store<u32>(names, count + 1)
  if (count >= mostNames) return
  store<u32>(names + 4 + count * 8, <u32>start)
  store<u32>(names + 4 + count * 8, <u32>(end - start), 4)
}

/** Whether the string that ends with the quote at `stop` is one of these. */
function hasName(start: usize, stop: usize, names: usize): bool {
  const count = load<u32>(names)
  if (count > mostNames) return true
  for (let index: u32 = 0; index < count; index++) {
    const name = <usize>load<u32>(names + 4 + index * 8)
    const length = <usize>load<u32>(names + 4 + index * 8, 4)
    if (stop - start <= length || load<u8>(stop - length - 1) !== quote) continue
    if (memory.compare(stop - length, name, length) === 0) return true
  }
  return false
}

/** Whether a name that ends ahead of `stop` is that of the model, and the value behind it is not the expected one. */
function isOtherModel(start: usize, stop: usize, behindColon: usize, end: usize, model: usize, modelLength: i32): bool {
  if (stop - start < 7 || !isText(stop - 7, '"model"')) return false
  const value = skipBlanks(behindColon, end)
  const valueStop = value + 1 + modelLength
  if (valueStop >= end || load<u8>(value) !== quote || load<u8>(valueStop) !== quote) return true
  return memory.compare(value + 1, model, modelLength) !== 0
}

/** Whether the string that ends with the quote at `stop` has an escape. */
function hasEscape(start: usize, stop: usize): bool {
  let at = stop - 1
  while (at > start && load<u8>(at) !== quote && load<u8>(at) !== backslash) at--
  return load<u8>(at) === backslash
}

/** The next colon, from `at` on; `end` when there is none. Every byte of every body comes by here: hence 64 at a time. */
function nextColon(at: usize, end: usize): usize {
  const colons = i8x16.splat(colon)
  while (at + 64 <= end) {
    const one = i8x16.eq(v128.load(at), colons)
    const two = i8x16.eq(v128.load(at, 16), colons)
    const three = i8x16.eq(v128.load(at, 32), colons)
    const four = i8x16.eq(v128.load(at, 48), colons)
    if (v128.any_true(v128.or(v128.or(one, two), v128.or(three, four)))) break
    at += 64
  }
  return findEither(at, end, colon, colon)
}
