import { createSeededRandom } from '../../playground/replay/seeded-random.ts'

const vocabulary = 128_000

/** Token ids as uniform as can be, which is the worst case for what compresses them. A longer prompt of the same seed begins with the shorter one. */
export const promptTokens = (seed: number, length: number): Uint32Array => {
  const random = createSeededRandom(seed)
  return Uint32Array.from({ length }, () => Math.floor(random() * vocabulary))
}
