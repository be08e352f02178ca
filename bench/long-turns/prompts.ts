/** Token ids as uniform as they can be, the same ones for the same seed: the worst case for whatever compresses them. */
export const promptTokens = (seed: number, length: number): Uint32Array => {
  const tokens = new Uint32Array(length)
  let state = Math.imul(seed, 0x9e3779b1) >>> 0
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    tokens[at] = (state >>> 8) % 128_000
  }
  return tokens
}
