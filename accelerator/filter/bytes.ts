// Looking at bytes of JSON.

export const quote: u8 = 34
export const comma: u8 = 44
export const colon: u8 = 58
export const openBrace: u8 = 123
export const closeBrace: u8 = 125

function isBlank(code: u8): bool {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** The first place from `at` on that is no white space of JSON; `end` when there is none. */
export function skipBlanks(at: usize, end: usize): usize {
  while (at < end && isBlank(load<u8>(at))) at++
  return at
}

/** The place behind the last byte before `end` that is no white space of JSON; `start` when there is none. */
export function dropBlanks(start: usize, end: usize): usize {
  while (end > start && isBlank(load<u8>(end - 1))) end--
  return end
}

/** Where an ASCII text of two characters or more begins, from `at` on; `end` when it is not there. */
export function find(at: usize, end: usize, text: string): usize {
  const length = <usize>text.length
  if (end - at < length) return end
  // All places where the text fits.
  const stop = end - length + 1
  const first = <u8>text.charCodeAt(0)
  const second = <u8>text.charCodeAt(1)
  const firsts = i8x16.splat(first)
  const seconds = i8x16.splat(second)
  // Two characters at once: one alone is frequent, and every byte of every body comes by here.
  for (; at + 16 <= stop; at += 16) {
    let hits = i8x16.bitmask(v128.and(i8x16.eq(v128.load(at), firsts), i8x16.eq(v128.load(at + 1), seconds)))
    for (; hits !== 0; hits &= hits - 1) {
      const place = at + <usize>ctz(hits)
      if (isText(place, text)) return place
    }
  }
  for (; at < stop; at++) if (isText(at, text)) return at
  return end
}

function isText(at: usize, text: string): bool {
  for (let index = 0; index < text.length; index++) {
    if (load<u8>(at + index) !== <u8>text.charCodeAt(index)) return false
  }
  return true
}
