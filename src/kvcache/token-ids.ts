/** The token ids of a decoded list; undefined where it is no list, or something in it cannot be a token id: a whole number of 32 bits. */
export const readTokenIds = (value: unknown): Uint32Array | undefined => {
  if (!Array.isArray(value)) return undefined
  const list: readonly unknown[] = value
  const tokens = new Uint32Array(list.length)
  for (let at = 0; at < list.length; at += 1) {
    const token = list[at]
    if (typeof token !== 'number') return undefined
    tokens[at] = token
    // What the array made another number of was none.
    if (tokens[at] !== token) return undefined
  }
  return tokens
}
