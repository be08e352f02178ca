/** Kinds of values. Small ones are nil, booleans and numbers of up to two bytes; larger numbers may be objects. */
const [small, large, bytes, text, list, map, none] = [0, 1, 2, 3, 4, 5, 6] as const
/** By kind: what a value takes while it is decoded and read, with its place in a list. Upper estimates. */
const valueBytes = [16, 48, 256, 64, 256, 256]
/** By kind: what is added for each byte, item or member that it counts. Bytes stay a part of the message. */
const unitBytes = [0, 0, 0, 2, 0, 256]

/** A value's first byte. `count` bytes, items or members follow; if `size` > 0, the next `size` bytes are the count. */
type Head = readonly [kind: number, count: number, size: number]
const counted = (kind: number, ...counts: readonly number[]) => counts.map((count): Head => [kind, count, 0])
const sized = (kind: number, ...sizes: readonly number[]) => sizes.map((size): Head => [kind, 0, size])
const upTo = (most: number) => Array.from({ length: most + 1 }, (_none, count) => count)
const repeated = (kind: number, times: number) => counted(kind, ...Array<number>(times).fill(0))
const integers = [counted(small, 1, 2), counted(large, 4, 8)]

/** The heads from 0 to 0xff. Extensions count as none: vLLM sends no such values. */
const heads: readonly Head[] = [
  [repeated(small, 0x80), counted(map, ...upTo(15)), counted(list, ...upTo(15)), counted(text, ...upTo(31))],
  [repeated(small, 1), repeated(none, 1), repeated(small, 2), sized(bytes, 1, 2, 4), repeated(none, 3)],
  [counted(large, 4, 8), ...integers, ...integers, repeated(none, 5)],
  [sized(text, 1, 2, 4), sized(list, 2, 4), sized(map, 2, 4), repeated(small, 0x20)],
].flatMap((groups) => groups.flat())
// Four times as fast as a list of objects.
const kindOf = Uint8Array.from(heads, ([kind]) => kind)
const countOf = Uint8Array.from(heads, ([, count]) => count)
const sizeOf = Uint8Array.from(heads, ([, , size]) => size)

/**
 * The memory that a msgpack value would take at most, without decoding it. A decoder allocates a list before it reads
 * the items, so that a head of five bytes takes gigabytes, and many of them can be nested.
 * @throws RangeError when the message is not exactly one value
 */
export const decodedBytes = (message: Uint8Array): number => {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  let at = 0
  let total = 0
  for (let values = 1; values > 0; values -= 1) {
    const head = view.getUint8(at)
    const kind = kindOf[head] ?? none
    const size = sizeOf[head]
    at += 1
    let count = countOf[head] ?? 0
    if (size === 1) count = view.getUint8(at)
    else if (size === 2) count = view.getUint16(at)
    else if (size === 4) count = view.getUint32(at)
    at += size ?? 0
    total += (valueBytes[kind] ?? 0) + (unitBytes[kind] ?? 0) * count
    if (kind === none) throw new RangeError('the message has a value of an unknown type')
    if (kind === list) values += count
    else if (kind === map) values += 2 * count
    else at += count
  }
  if (at !== message.byteLength) throw new RangeError('the message is not one value')
  return total
}
