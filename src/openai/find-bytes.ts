import type { SlicedWork } from '../async/slices.ts'

/** Searched at once: at most 3 ms, for bytes that are made to be slow. */
const windowBytes = 131_072

/** Index of the first `wanted` in a body from an index on; -1: it is not there. In slices. */
export function* findBytes(body: Buffer, wanted: Buffer, from = 0): SlicedWork<number> {
  for (let start = from; start < body.length; start += windowBytes) {
    const at = body.subarray(start, start + windowBytes + wanted.length - 1).indexOf(wanted)
    if (at !== -1) return start + at
    if (body.length - start > windowBytes) yield
  }
  return -1
}
