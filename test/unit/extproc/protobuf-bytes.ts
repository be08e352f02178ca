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

/** A field of text, bytes, or of a message made of fields. */
export const field = (number: number, ...content: readonly (string | Buffer)[]): Buffer => {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part)))
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

interface Values {
  readonly [name: string]: string | Values
}

/** google.protobuf.Struct of texts and structs. */
export const struct = (values: Values): Buffer =>
  Buffer.concat(
    Object.entries(values).map(([name, value]) =>
      field(1, field(1, name), field(2, typeof value === 'string' ? field(3, value) : field(5, struct(value)))),
    ),
  )
