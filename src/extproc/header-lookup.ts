/** A header as it stands in a decoded message. */
export interface WireHeader {
  readonly key?: string
  readonly raw_value?: Buffer
}

/** All values of a header, in their order, bytes as latin1; none: empty. `name` in lower case. */
export type HeaderLookup = (name: string) => readonly string[]

const none: readonly string[] = Object.freeze([])

/** Headers by name. The index is built when the first header is asked for, and only once. */
export const createHeaderLookup = (headers: readonly WireHeader[]): HeaderLookup => {
  let index: ReadonlyMap<string, readonly string[]> | undefined
  return (name) => {
    index ??= indexHeaders(headers)
    return index.get(name) ?? none
  }
}

const indexHeaders = (headers: readonly WireHeader[]): ReadonlyMap<string, readonly string[]> => {
  const index = new Map<string, string[]>()
  for (const { key = '', raw_value: value } of headers) {
    const text = value === undefined ? '' : value.toString('latin1')
    const values = index.get(key)
    if (values === undefined) index.set(key, [text])
    else values.push(text)
  }
  return index
}
