// Headers of the request whose context is in effect.

import { proxy_replace_header_map_value, requestHeaders } from './env'
import { writeText } from './scratch'

const name: usize = memory.data(32)
const countBytes: usize = 4
/** Lengths of a header's name and value. */
const lengthsBytes: usize = 8

export function setRequestHeader(header: string, value: usize, length: i32): void {
  proxy_replace_header_map_value(requestHeaders, name, writeText(header, name), value, length)
}

/** Whether these bytes are headers of proxy-wasm: number, all lengths, names and values, each with a zero behind. */
export function isHeaderMap(map: usize, length: i32): bool {
  if (<usize>length < countBytes) return false
  const count = <u64>load<u32>(map)
  let bytes: u64 = countBytes + count * lengthsBytes
  if (bytes > <u64>length) return false
  let lengths = map + countBytes
  for (let index: u64 = 0; index < count; index++) {
    bytes += <u64>load<u32>(lengths) + <u64>load<u32>(lengths, 4) + 2
    lengths += lengthsBytes
  }
  return bytes === <u64>length
}

/** Sets the headers of a header map. */
export function setRequestHeaders(map: usize): void {
  const count = load<u32>(map)
  let lengths = map + countBytes
  let at = lengths + <usize>count * lengthsBytes
  for (let index: u32 = 0; index < count; index++) {
    const nameLength = load<i32>(lengths)
    const valueLength = load<i32>(lengths, 4)
    const value = at + nameLength + 1
    proxy_replace_header_map_value(requestHeaders, at, nameLength, value, valueLength)
    at = value + valueLength + 1
    lengths += lengthsBytes
  }
}
