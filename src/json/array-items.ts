const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
/** By how much a byte outside of strings changes the depth. */
const depths: ReadonlyMap<number | undefined, number> = new Map([
  [0x5b, 1],
  [0x7b, 1],
  [0x5d, -1],
  [0x7d, -1],
])
/** Bytes outside of strings, and quotes inside, between two pauses, some 1 ms. */
const sliceBytes = 65_536

/**
 * The items of an array in a JSON text that was checked before, without white space around them; of an object its
 * members, each with its name. In slices.
 */
export function* arrayItems(array: Buffer): Generator<undefined, readonly Buffer[]> {
  const ends: number[] = []
  let [depth, first, looked] = [0, 0, 0]
  let isInText = false
  for (let at = 0; at < array.length; at += 1) {
    looked += 1
    if (looked % sliceBytes === 0) yield
    if (isInText) {
      const end = array.indexOf(quote, at)
      if (end === -1) break
      isInText = isEscaped(array, end, at)
      at = end
      continue
    }
    const byte = array[at]
    const change = depths.get(byte) ?? 0
    if (byte === quote) isInText = true
    else if (change === 1 && depth === 0) first = at + 1
    else if ((byte === comma && depth === 1) || (change === -1 && depth === 1)) ends.push(at)
    depth += change
  }
  const items = ends.map((end, index) => trimmed(array.subarray(index === 0 ? first : (ends[index - 1] ?? 0) + 1, end)))
  return items.filter(({ length }) => length > 0)
}

/** Whether the quote at `at` belongs to the text, which has no other one from `floor` on. */
const isEscaped = (text: Buffer, at: number, floor: number): boolean => {
  let before = at - 1
  while (before >= floor && text[before] === backslash) before -= 1
  return (at - before) % 2 === 0
}

const isWhite = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Without white space around it. */
export const trimmed = (text: Buffer): Buffer => {
  let [start, end] = [0, text.length]
  while (start < end && isWhite(text[start])) start += 1
  while (end > start && isWhite(text[end - 1])) end -= 1
  return text.subarray(start, end)
}
