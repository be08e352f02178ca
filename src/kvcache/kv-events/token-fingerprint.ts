/** A 32-bit FNV-1a of the tokens from `start` on: equal runs have equal fingerprints, so that only few need to be compared in full. */
export const fingerprintOf = (tokens: Uint32Array, start: number, length: number): number => {
  let hash = 0x811c9dc5 ^ length
  for (let at = start; at < start + length; at += 1) hash = Math.imul(hash ^ (tokens[at] ?? 0), 0x01000193)
  return hash >>> 0
}

/** Whether `run` stands in `tokens` at `start`. */
export const standsAt = (run: Uint32Array, tokens: Uint32Array, start: number): boolean => {
  if (start + run.length > tokens.length) return false
  for (let at = 0; at < run.length; at += 1) if (run[at] !== tokens[start + at]) return false
  return true
}
