// Byte-pair vocabularies of the kind `gpt2` in which every byte is a token, so that any text comes back as it was.
import { commonFragments } from './common-fragments.ts'

/** `bytes`: one token for each byte of text. `words`: some three to four characters of English, JSON or code a token. */
export type VocabularyKind = 'bytes' | 'words'

/** Tokens and merges, spelt in the byte alphabet. */
export interface Vocabulary {
  /** Index = token id. The first 256 are the bytes, the last ones the special tokens. */
  readonly tokens: readonly string[]
  /** How many of the tokens, from the first one, stand for text. */
  readonly textTokens: number
  /** Pairs of tokens that become one, the first ones first. */
  readonly merges: readonly string[]
}

const specialTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const

const isPrintable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae

/** GPT-2's spelling of each byte: itself where it is printable, else a character from U+0100 upwards. */
export const byteAlphabet: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte).map((byte, _, bytes) => {
  const hiddenBefore = bytes.slice(0, byte).filter((other) => !isPrintable(other)).length
  return String.fromCodePoint(isPrintable(byte) ? byte : 0x100 + hiddenBefore)
})

const spell = (text: string): string => Array.from(Buffer.from(text), (byte) => byteAlphabet[byte]).join('')

export const createVocabulary = (kind: VocabularyKind): Vocabulary => {
  const { pieces, merges } = kind === 'words' ? mergesToFragments() : noMerges
  const text = [...byteAlphabet, ...pieces]
  return { tokens: [...text, ...specialTokens], textTokens: text.length, merges }
}

// llama.cpp refuses an empty list of merges. The bytes C0 and C1 never occur in UTF-8, so this merge never applies.
const noMerges = { pieces: [], merges: [`${byteAlphabet[0xc0]} ${byteAlphabet[0xc1]}`] }

/** Line ends and indentation, as GPT-2 cuts them: the last space of an indentation belongs to the word behind it. */
const whiteSpace = ['  ', '   ', '     ', '       ', '\n\n', '\n ', '\n   ', '\n     ', '\n       ', '\n         ']

const mergesToFragments = () => {
  const ranks = new Map<string, number>()
  const pieces = new Set<string>()
  const merge = (left: string, right: string): void => {
    ranks.set(`${left} ${right}`, ranks.size)
    pieces.add(left + right)
  }
  for (const fragment of [...whiteSpace, ...commonFragments].map(spell)) {
    for (;;) {
      const [left, right] = applyMerges(fragment, ranks)
      if (left === undefined || right === undefined) break
      merge(left, right)
    }
  }
  // Last of all, so that a word is made of the same tokens behind a space as elsewhere.
  const visible = [...byteAlphabet, ...pieces].filter((piece) => /^[!-~]/.test(piece))
  for (const piece of visible) merge(spell(' '), piece)
  return { pieces: [...pieces], merges: [...ranks.keys()] }
}

/** Byte-pair encoding of one word. */
const applyMerges = (word: string, ranks: ReadonlyMap<string, number>): readonly string[] => {
  const parts = Array.from(word)
  for (;;) {
    const rankAt = parts
      .slice(1)
      .map((right, index) => ranks.get(`${parts[index]} ${right}`) ?? Number.POSITIVE_INFINITY)
    const lowest = Math.min(...rankAt)
    if (!Number.isFinite(lowest)) return parts
    const index = rankAt.indexOf(lowest)
    parts.splice(index, 2, `${parts[index]}${parts[index + 1]}`)
  }
}
