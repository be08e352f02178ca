// Memory for what passes through: what Envoy hands over, and what it is asked to send. Nothing outlives the call in which it came, so nothing is
// ever freed, and nothing of this filter is on a heap.

const pageBytes: usize = 65_536

/** Longer bodies are not held: of requests they are refused, and answers pass as they are. */
export const mostBodyBytes: u64 = 16_777_216

/** Two results of a function of Envoy's: where, and how long. */
export const result: usize = memory.data(8)

let at: usize = 0

/** A call by Envoy begins: all of this memory is free. `reserved` bytes are left ahead of what Envoy hands over first. */
export function begin(reserved: usize): usize {
  at = (__heap_base + 15) & ~15
  const start = at
  at += reserved
  return start
}

/** Room for `size` bytes. */
export function take(size: usize): usize {
  const start = at
  at = start + size
  const limit = <usize>memory.size() * pageBytes
  if (at > limit && memory.grow(<i32>((at - limit + pageBytes - 1) / pageBytes)) < 0) unreachable()
  return start
}

/** Writes an ASCII text, and returns its length. */
export function writeText(text: string, to: usize): i32 {
  for (let index = 0; index < text.length; index++) store<u8>(to + index, <u8>text.charCodeAt(index))
  return text.length
}

/** Writes a number that is not negative, and returns its length. */
export function writeDecimal(value: i32, to: usize): i32 {
  let length = 1
  for (let rest = value; rest >= 10; rest /= 10) length++
  let rest = value
  for (let index = length - 1; index >= 0; index--) {
    store<u8>(to + index, <u8>(48 + (rest % 10)))
    rest /= 10
  }
  return length
}
