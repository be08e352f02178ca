// Memory for one call by Envoy: for what Envoy hands over, and for what this filter hands back. The next call reuses
// it, so nothing is freed. The filter has no heap.

import { proxy_get_buffer_bytes } from './env'

const pageBytes: usize = 65_536

/** Two results of a function of Envoy: address and length. */
export const result: usize = memory.data(8)

let at: usize = 0

/** A call by Envoy begins: all of this memory is free. */
export function begin(): void {
  at = (__heap_base + 15) & ~15
}

/** The end of what is taken, for `release`. */
export function mark(): usize {
  return at
}

/** Frees what was taken after the mark. */
export function release(to: usize): void {
  at = to
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
export function writeDecimal(value: u32, to: usize): i32 {
  let length = 1
  for (let rest = value; rest >= 10; rest /= 10) length++
  let rest = value
  for (let index = length - 1; index >= 0; index--) {
    store<u8>(to + index, <u8>(48 + (rest % 10)))
    rest /= 10
  }
  return length
}

/** Reads all of a buffer: `result` is its address and length. False when there is none. */
export function readBuffer(kind: i32): bool {
  // Envoy writes no result for an empty buffer.
  store<u64>(result, 0)
  return proxy_get_buffer_bytes(kind, 0, i32.MAX_VALUE, result, result + 4) === 0
}
