import { createHash } from 'node:crypto'

/** A prompt as the completions API takes it. */
export type Prompt = string | readonly number[]

/** Makes prompts of a known length. */
export interface PromptMaker {
  /** The same for the same seed, and different from the first token on for another. */
  readonly make: (seed: string, tokens: number) => Prompt
  /** One after the other. */
  readonly join: (first: Prompt, second: Prompt) => Prompt
}

const letters = 'abcdefghijklmnopqrstuvwxyz      '

/** Text for the embedded engine's random model, to which a byte is a token. */
export const textPrompts: PromptMaker = {
  make: (seed, tokens) => {
    let text = ''
    for (const byte of bytesOf(seed, tokens)) text += letters[byte % letters.length]
    return text.replace(/ $/, 'x')
  },
  join: (first, second) => `${String(first)} ${String(second)}`,
}

/** Token ids, which every vocabulary of some thousand words has. */
export const tokenPrompts: PromptMaker = {
  make: (seed, tokens) => {
    const bytes = bytesOf(seed, tokens * 2)
    return Array.from({ length: tokens }, (_, at) => 100 + ((bytes.readUInt16LE(at * 2) * 7) % 3800))
  },
  join: (first, second) => [...asTokens(first), ...asTokens(second)],
}

const asTokens = (prompt: Prompt): readonly number[] => {
  if (typeof prompt === 'string') throw new Error('a text is no list of tokens')
  return prompt
}

const bytesOf = (seed: string, length: number): Buffer => {
  const blocks: Buffer[] = []
  for (let block = 0; block * 32 < length; block += 1) {
    blocks.push(createHash('sha256').update(`${seed}\n${block}`).digest())
  }
  return Buffer.concat(blocks).subarray(0, length)
}
