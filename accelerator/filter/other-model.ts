// Whether a body names another model than its session's.

import { colon, isText, quote, skipBlanks } from './bytes'
import { levelOf, stringEnd, unread, withoutEscapes } from './json-text'
import { take } from './scratch'

const key = 'model'
/** The longest writing of the key: every letter as an escape. */
const longestKey: usize = 30

/**
 * Whether the model of the object from `start` to `end` is another than the `expected` one: that of its last own member "model". What cannot be told is left to
 * the engine.
 */
export function namesOtherModel(start: usize, end: usize, expected: usize, expectedLength: usize): bool {
  let depth = 0
  let isOther = false
  for (let at = start; at < end; at++) {
    const mark = load<u8>(at)
    if (mark === quote) {
      const stop = stringEnd(at + 1, end)
      if (stop >= end) return false
      const afterName = skipBlanks(stop + 1, end)
      if (depth === 1 && isKey(at + 1, stop) && afterName < end && load<u8>(afterName) === colon)
        isOther = isOtherValue(afterName + 1, end, expected, expectedLength)
      at = stop
    } else depth += levelOf(mark)
  }
  return isOther
}

function isKey(start: usize, end: usize): bool {
  if (end - start > longestKey) return false
  const plain = take(longestKey)
  return withoutEscapes(start, end, plain) === key.length && isText(plain, key)
}

/** Whether a value is a string that can be read, and another one. */
function isOtherValue(at: usize, end: usize, expected: usize, expectedLength: usize): bool {
  const value = skipBlanks(at, end)
  if (value >= end || load<u8>(value) !== quote) return false
  const stop = stringEnd(value + 1, end)
  if (stop >= end) return false
  const plain = take(stop - value)
  const length = withoutEscapes(value + 1, stop, plain)
  if (length === unread) return false
  return length !== <i32>expectedLength || memory.compare(plain, expected, expectedLength) !== 0
}
