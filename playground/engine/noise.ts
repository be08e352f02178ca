// What the random models answer. Their own choice would be any bytes; a bias leaves them only harmless tokens, of which
// an answer sent back consists again: plain in JSON, no marks, nothing that a client takes for a call of a tool.
import { commonFragments } from './common-fragments.ts'
import type { VocabularyKind } from './vocabulary.ts'

/** The scores that are added to those of some tokens. */
export interface TokenBias {
  set(tokens: number[], bias: { logit: number }): TokenBias
}

/** Where answers end, which such a model never does by itself. */
export interface NoiseLimits {
  /** Longest answer to a request that names no limit, in tokens. */
  readonly defaultMaxTokens?: number
  /** Tokens after which every answer ends as if the model had ended it, unless the request has `ignore_eos`. */
  readonly answerTokens?: number
}

/** The words are for clients that leave the end of an answer to the model: coding agents. */
export const noiseLimits: Readonly<Record<VocabularyKind, NoiseLimits>> = {
  bytes: { defaultMaxTokens: 128 },
  words: { answerTokens: 64 },
}

const letters = Array.from('abcdefghijklmnopqrstuvwxyz ,.')
const words = commonFragments.filter((fragment) => /^[a-z]{4,}$/.test(fragment)).slice(0, 256)
/** Above any score of the random model, so that nothing else is chosen, the end of the answer included. */
const logit = 100

/**
 * Gives each answer its bias, which may change from token to token. `follows` are the bytes of the token in front of it.
 */
export const createNoise = (
  kind: VocabularyKind,
  tools: { readonly tokenize: (text: string) => number[]; readonly newBias: () => TokenBias },
): ((follows: Uint8Array) => TokenBias | (() => TokenBias)) => {
  const biasTo = (texts: readonly string[]): TokenBias =>
    texts.map(tools.tokenize).reduce((sum, tokens) => sum.set(tokens, { logit }), tools.newBias())
  if (kind === 'bytes') {
    const bias = biasTo(letters)
    return () => bias
  }
  // A text sent back is cut in front of its spaces.
  const [first, later] = [biasTo(words), biasTo(words.map((word) => ` ${word}`))]
  return (follows) => {
    let isFirst = follows.at(-1) === lineEnd
    return () => {
      const bias = isFirst ? first : later
      isFirst = false
      return bias
    }
  }
}

const lineEnd = 0x0a
