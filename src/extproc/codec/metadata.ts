import type { WireCommon, WireStruct, WireValue } from '../../accesslog/wire.ts'
import type { WireReader } from './wire-reader.ts'

const mapTag = 1 * 8 + 2

/** Envoy's Metadata: structs by namespace. Values that are lists or structs are named, not decoded. */
export const readMetadata = (reader: WireReader): NonNullable<WireCommon['metadata']> => {
  const namespaces = readMap(reader, mapTag, readStruct, {})
  return namespaces === undefined ? {} : { filter_metadata: namespaces }
}

const readStruct = (reader: WireReader): WireStruct => {
  const fields = readMap(reader, mapTag, readValue, {})
  return fields === undefined ? {} : { fields }
}

/** Of a nested message, the map in the field of this tag; an empty map is missing. */
export const readMap = <Value>(
  reader: WireReader,
  fieldTag: number,
  read: (reader: WireReader) => Value,
  missing: Value,
): Readonly<Record<string, Value>> | undefined => {
  const members: (readonly [string, Value])[] = []
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === fieldTag) members.push(readMember(reader, read, missing))
    else reader.skip(tag)
  }
  reader.leave(outer)
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

const readMember = <Value>(
  reader: WireReader,
  read: (reader: WireReader) => Value,
  missing: Value,
): readonly [string, Value] => {
  let key = ''
  let value = missing
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 1 * 8 + 2) key = reader.text()
    else if (tag === 2 * 8 + 2) value = read(reader)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return [key, value]
}

/** Kinds of a value that are named only. */
const otherKinds: Readonly<Record<number, string>> = Object.freeze({
  [1 * 8]: 'nullValue',
  [5 * 8 + 2]: 'structValue',
  [6 * 8 + 2]: 'listValue',
})

const readValue = (reader: WireReader): WireValue => {
  let value: WireValue = {}
  const outer = reader.enter()
  while (reader.more) {
    const tag = reader.tag()
    if (tag === 2 * 8 + 1) value = { kind: 'numberValue', numberValue: reader.double() }
    else if (tag === 3 * 8 + 2) value = { kind: 'stringValue', stringValue: reader.text() }
    else if (tag === 4 * 8) value = { kind: 'boolValue', boolValue: reader.bool() }
    else {
      const kind = otherKinds[tag]
      if (kind !== undefined) value = { kind }
      reader.skip(tag)
    }
  }
  reader.leave(outer)
  return value
}
