/** Protobuf written by hand from field numbers, so that tests do not depend on the .proto files they check. */

const varint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  return Buffer.from([...bytes, rest])
}

/** A field of a number or boolean. */
export const int = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8), varint(value)])

/** What stands before the content of a field of `length` bytes. */
export const opening = (number: number, length: number): Buffer =>
  Buffer.concat([varint(number * 8 + 2), varint(length)])

/** A field of text, bytes, or of a message made of fields. */
export const field = (number: number, ...content: readonly (string | Buffer)[]): Buffer => {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part)))
  return Buffer.concat([opening(number, bytes.length), bytes])
}

/** A field of a double. */
export const double = (number: number, value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return Buffer.concat([varint(number * 8 + 1), bytes])
}

/** google.protobuf.Struct of texts, numbers, booleans and structs. */
export const struct = (values: Readonly<Record<string, unknown>>): Buffer =>
  Buffer.concat(Object.entries(values).map(([key, value]) => field(1, field(1, key), field(2, structValue(value)))))

const structValue = (value: unknown): Buffer => {
  switch (typeof value) {
    case 'string':
      return field(3, value)
    case 'number':
      return double(2, value)
    case 'boolean':
      return int(4, value ? 1 : 0)
    default:
      return field(5, struct(value as Readonly<Record<string, unknown>>))
  }
}
