// Protocol Buffers as far as protos/turns.proto needs them: fields that are varints or length-delimited.

const varintType: u32 = 0
const textType: u32 = 2

/** The field that `readField` read: its number in the .proto file, 0 for one of another type. */
export let field: u32 = 0
/** Its value; 0 if it has bytes. */
export let number: u32 = 0
/** Where its bytes are, and how many; none if it is a number. */
export let text: usize = 0
export let textLength: i32 = 0

/** What `readField` returns for bytes that are no field. */
export const malformed: usize = 0

/** Reads the field at `at`, and returns where the next one begins. */
export function readField(at: usize, end: usize): usize {
  at = readVarint(at, end)
  if (at === malformed) return malformed
  const tag = varint
  field = <u32>(tag >> 3)
  at = readVarint(at, end)
  if (at === malformed) return malformed
  const hasBytes = (<u32>tag & 7) === textType
  if (hasBytes ? varint > <u64>(end - at) : (<u32>tag & 7) !== varintType) return malformed
  number = hasBytes ? 0 : <u32>varint
  text = at
  textLength = hasBytes ? <i32>varint : 0
  return at + textLength
}

let varint: u64 = 0

function readVarint(at: usize, end: usize): usize {
  varint = 0
  for (let shift: u64 = 0; shift < 64 && at < end; shift += 7) {
    const byte = load<u8>(at++)
    varint |= (<u64>(byte & 127)) << shift
    if (byte < 128) return at
  }
  return malformed
}

/** How many bytes a number takes. */
export function varintBytes(value: u32): u32 {
  let bytes: u32 = 1
  for (let rest = value >> 7; rest !== 0; rest >>= 7) bytes++
  return bytes
}

/** Writes the field `number` with a number as its value, and returns the place behind it. */
export function writeNumber(number: u32, value: u32, at: usize): usize {
  return writeVarint(value, writeVarint((number << 3) | varintType, at))
}

/** Writes the start of the field `number`, whose value are the next `length` bytes, and returns the place behind it. */
export function writeLength(number: u32, length: u32, at: usize): usize {
  return writeVarint(length, writeVarint((number << 3) | textType, at))
}

function writeVarint(value: u32, at: usize): usize {
  for (; value > 127; value >>= 7) store<u8>(at++, <u8>(value | 128))
  store<u8>(at, <u8>value)
  return at + 1
}
