import { createHash } from 'node:crypto'

/** A prompt as the completions API takes it: token ids. */
export type Prompt = readonly number[]

/** The token ids to use of a model's vocabulary. */
export interface Vocabulary {
  readonly firstId: number
  readonly size: number
}

/** A prompt of so many tokens: the same for the same seed, another one for another seed. */
export const makePrompt = ({ firstId, size }: Vocabulary, seed: string, tokens: number): Prompt => {
  const bytes = createHash('shake256', { outputLength: tokens * 2 })
    .update(seed)
    .digest()
  return Array.from({ length: tokens }, (_, at) => firstId + (bytes.readUInt16LE(at * 2) % size))
}
