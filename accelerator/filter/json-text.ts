// What walking through a JSON text takes.

import { backslash, closeBrace, findEither, openBrace, quote } from './bytes'

/** What `withoutEscapes` returns for a string that it does not read. */
export const unread: i32 = -1

/** The place of the quote that ends the string whose text begins at `at`; `end` when there is none. */
export function stringEnd(at: usize, end: usize): usize {
  while (true) {
    const found = findEither(at, end, quote, backslash)
    if (found >= end || load<u8>(found) === quote) return found
    at = found + 2
  }
}

/**
 * Writes the string between two quotes without its escapes, in UTF-8, which is never longer, and returns its length. Characters beyond the Basic
 * Multilingual Plane, which JSON writes as two escapes, stay unread.
 */
export function withoutEscapes(start: usize, end: usize, to: usize): i32 {
  let at = start
  let out = to
  while (at < end) {
    const code = load<u8>(at)
    at++
    if (code !== backslash || at >= end) {
      store<u8>(out++, code)
      continue
    }
    const kind = load<u8>(at)
    at++
    if (kind !== 117) {
      store<u8>(out++, plain(kind))
      continue
    }
    const unit = at + 4 <= end ? hexAt(at) : -1
    if (unit < 0 || (unit >= 0xd800 && unit < 0xe000)) return unread
    at += 4
    out = writeUtf8(unit, out)
  }
  return <i32>(out - to)
}

/** What a letter behind a backslash stands for. */
function plain(kind: u8): u8 {
  switch (kind) {
    case 98:
      return 8
    case 102:
      return 12
    case 110:
      return 10
    case 114:
      return 13
    case 116:
      return 9
    default:
      return kind
  }
}

function hexAt(at: usize): i32 {
  let value = 0
  for (let index: usize = 0; index < 4; index++) {
    const code = load<u8>(at + index)
    const lower = code | 32
    if (code >= 48 && code <= 57) value = value * 16 + (code - 48)
    else if (lower >= 97 && lower <= 102) value = value * 16 + (lower - 87)
    else return -1
  }
  return value
}

function writeUtf8(code: i32, to: usize): usize {
  if (code < 0x80) {
    store<u8>(to, <u8>code)
    return to + 1
  }
  if (code < 0x800) {
    store<u8>(to, <u8>(0xc0 | (code >> 6)))
    store<u8>(to + 1, <u8>(0x80 | (code & 63)))
    return to + 2
  }
  store<u8>(to, <u8>(0xe0 | (code >> 12)))
  store<u8>(to + 1, <u8>(0x80 | ((code >> 6) & 63)))
  store<u8>(to + 2, <u8>(0x80 | (code & 63)))
  return to + 3
}

/** How much deeper it is behind a mark. */
export function levelOf(mark: u8): i32 {
  if (mark === openBrace || mark === 91) return 1
  return mark === closeBrace || mark === 93 ? -1 : 0
}
