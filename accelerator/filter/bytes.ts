// Looking at bytes.

export const quote: u8 = 34
export const colon: u8 = 58
export const backslash: u8 = 92
export const openBrace: u8 = 123
export const closeBrace: u8 = 125

/** Where one of two bytes stands first, from `at` on; `end` when neither does. */
export function findEither(at: usize, end: usize, one: u8, other: u8): usize {
  const ones = i8x16.splat(one)
  const others = i8x16.splat(other)
  while (at + 16 <= end) {
    const block = v128.load(at)
    const hits = i8x16.bitmask(v128.or(i8x16.eq(block, ones), i8x16.eq(block, others)))
    if (hits !== 0) return at + <usize>ctz(hits)
    at += 16
  }
  while (at < end && load<u8>(at) !== one && load<u8>(at) !== other) at++
  return at
}

export function isBlank(code: u8): bool {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** The first place from `at` on that is no white space; `end` when there is none. */
export function skipBlanks(at: usize, end: usize): usize {
  while (at < end && isBlank(load<u8>(at))) at++
  return at
}

/** The place behind the last byte before `end` that is no white space; `start` when there is none. */
export function dropBlanks(start: usize, end: usize): usize {
  while (end > start && isBlank(load<u8>(end - 1))) end--
  return end
}

/** Whether the bytes at `at`, all of which are there, are this ASCII text. */
export function isText(at: usize, text: string): bool {
  for (let index = 0; index < text.length; index++) {
    if (load<u8>(at + index) !== <u8>text.charCodeAt(index)) return false
  }
  return true
}

/** Where an ASCII text begins, from `at` on; `end` when it does not stand there whole. */
export function find(at: usize, end: usize, text: string): usize {
  const length = <usize>text.length
  if (end - at < length) return end
  const first = <u8>text.charCodeAt(0)
  const behindLast = end - length + 1
  while (true) {
    at = findEither(at, behindLast, first, first)
    if (at >= behindLast) return end
    if (isText(at, text)) return at
    at++
  }
}

export function contains(start: usize, end: usize, text: string): bool {
  return start < end && find(start, end, text) < end
}

export function isDigit(code: u8): bool {
  return code >= 48 && code <= 57
}
