import { codeAt } from '../../collections/code-at.ts'
import type { HeaderLookup } from '../header-lookup.ts'
import type { WireReader } from './wire-reader.ts'

const none: readonly string[] = Object.freeze([])

const headerTag = 1 * 8 + 2
const keyTag = 1 * 8 + 2
const rawValueTag = 3 * 8 + 2

/** Adds the headers of the HeaderMap that `reader` has entered. */
export const readHeaderMap = (reader: WireReader, offsets: number[]): void => {
  while (reader.next(headerTag)) readHeader(reader, offsets)
}

const readHeader = (reader: WireReader, offsets: number[]): void => {
  const outer = reader.enter()
  let keyStart = 0
  let keyEnd = 0
  let valueStart = 0
  let valueEnd = 0
  while (reader.more) {
    const tag = reader.tag()
    if (tag === keyTag) {
      keyStart = reader.span()
      keyEnd = reader.at
    } else if (tag === rawValueTag) {
      valueStart = reader.span()
      valueEnd = reader.at
    } else reader.skip(tag)
  }
  reader.leave(outer)
  offsets.push(keyStart, keyEnd, valueStart, valueEnd)
}

/** Compares names where they lie; only a value that is asked for becomes text. */
export const createTableLookup =
  (bytes: Buffer, offsets: readonly number[]): HeaderLookup =>
  (name) => {
    let values: string[] | undefined
    for (let index = 0; index < offsets.length; index += 4) {
      const keyStart = offsets[index] ?? 0
      const keyEnd = offsets[index + 1] ?? 0
      if (keyEnd - keyStart !== name.length || !isText(bytes, keyStart, name)) continue
      const value = bytes.toString('latin1', offsets[index + 2], offsets[index + 3])
      if (values === undefined) values = [value]
      else values.push(value)
    }
    return values ?? none
  }

/** From the end: names that begin alike are more usual than names that end alike. */
const isText = (bytes: Buffer, start: number, text: string): boolean => {
  for (let index = text.length - 1; index >= 0; index--) {
    if (bytes[start + index] !== codeAt(text, index)) return false
  }
  return true
}
