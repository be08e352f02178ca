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
/** Bytes outside of strings between two pauses, some 1 ms. */
const sliceBytes = 65_536

/** The items of an array in a JSON text that was checked before, without white space around them. In slices. */
export function* arrayItems(array: Buffer): Generator<undefined, readonly Buffer[]> {
  const ends: number[] = []
  let [depth, first, looked] = [0, 0, 0]
  for (let at = 0; at < array.length; at += 1) {
    const byte = array[at]
    const change = depths.get(byte) ?? 0
    if (byte === quote) at = closingQuote(array, at)
    else if (change === 1 && depth === 0) first = at + 1
    else if ((byte === comma && depth === 1) || (change === -1 && depth === 1)) ends.push(at)
    depth += change
    looked += 1
    if (looked % sliceBytes === 0) yield
  }
  const items = ends.map((end, index) => trimmed(array.subarray(index === 0 ? first : (ends[index - 1] ?? 0) + 1, end)))
  return items.filter(({ length }) => length > 0)
}

const closingQuote = (text: Buffer, open: number): number => {
  let end = text.indexOf(quote, open + 1)
  while (end !== -1 && isEscaped(text, end, open)) end = text.indexOf(quote, end + 1)
  return end === -1 ? text.length : end
}

const isEscaped = (text: Buffer, at: number, floor: number): boolean => {
  let before = at - 1
  while (before > floor && text[before] === backslash) before -= 1
  return (at - before) % 2 === 0
}

const isWhite = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const trimmed = (text: Buffer): Buffer => {
  let [start, end] = [0, text.length]
  while (start < end && isWhite(text[start])) start += 1
  while (end > start && isWhite(text[end - 1])) end -= 1
  return text.subarray(start, end)
}
