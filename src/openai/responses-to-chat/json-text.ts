/** A JSON text in pieces, most of them views of the text that it is made of. */
export type JsonText = readonly Buffer[]

/** A JSON text with values in it. */
export const jsonText = (strings: TemplateStringsArray, ...values: readonly (Buffer | JsonText)[]): JsonText =>
  strings.flatMap((text, index) => {
    const value = values[index] ?? []
    return [Buffer.from(text), ...(Buffer.isBuffer(value) ? [value] : value)]
  })

/** A list of JSON texts. */
export const jsonList = (items: readonly (Buffer | JsonText)[]): JsonText => [
  openArray,
  ...items.flatMap((item, index) => [...(index === 0 ? [] : [comma]), ...(Buffer.isBuffer(item) ? [item] : item)]),
  closeArray,
]

/** An object of JSON texts by their names. Members without a text are left out. */
export const jsonObject = (members: Iterable<readonly [string, Buffer | JsonText | undefined]>): JsonText => {
  const pieces: Buffer[] = []
  for (const [name, value] of members) {
    if (value === undefined) continue
    pieces.push(Buffer.from(`${pieces.length === 0 ? '{' : ','}${JSON.stringify(name)}:`))
    pieces.push(...(Buffer.isBuffer(value) ? [value] : value))
  }
  return pieces.length === 0 ? [emptyObject] : [...pieces, closeObject]
}

const openArray = Buffer.from('[')
const closeArray = Buffer.from(']')
const comma = Buffer.from(',')
const closeObject = Buffer.from('}')
const emptyObject = Buffer.from('{}')
