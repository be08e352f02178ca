// Weights from a pseudo-random sequence that depends on nothing but the seed and the tensor's name. Only integer
// arithmetic decides which weight comes where, so every machine writes the same bytes.
import { halfFloatBits } from './half-float.ts'

/** Where a tensor's weights come from. */
export interface WeightSource {
  /** Makes two files of different seed differ in every tensor. */
  readonly seed: number
  /** Name of the tensor, which starts a sequence of its own. */
  readonly name: string
  /** Standard deviation of the evenly distributed weights. */
  readonly deviation: number
}

const levelBits = 12
const levels = 1 << levelBits

/** Fills `target` with binary16 weights, evenly distributed around zero. */
export function fillRandomHalfFloats(target: Buffer, { seed, name, deviation }: WeightSource): void {
  const table = levelTable(deviation)
  let state = startState(seed, name)
  for (let offset = 0; offset + 2 <= target.length; offset += 2) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    target.writeUInt16LE(table[state >>> (32 - levelBits)] ?? 0, offset)
  }
}

/** Fills `target` with the binary32 number 1, the neutral weight of a norm. */
export function fillOnes(target: Buffer): void {
  for (let offset = 0; offset + 4 <= target.length; offset += 4) target.writeFloatLE(1, offset)
}

function levelTable(deviation: number): Uint16Array {
  const limit = deviation * Math.sqrt(3)
  return Uint16Array.from({ length: levels }, (_, level) => halfFloatBits(((2 * level + 1) / levels - 1) * limit))
}

function startState(seed: number, name: string): number {
  let hash = 0x811c9dc5 ^ seed
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193)
  // Zero is the one state that a xorshift generator never leaves.
  return hash === 0 ? 1 : hash
}
