// A vocabulary in which every byte is one token, written in the alphabet that GPT-2's tokenizer gives to bytes, plus
// the ChatML marks.

/** Text of the special tokens, in the order of their ids, which follow the 256 bytes. */
export const specialTokens = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'] as const

const normalTokenType = 1
const controlTokenType = 3

/** What the `tokenizer.ggml.*` metadata needs. */
export interface ByteVocabulary {
  /** Token texts; the id of a byte's token is the byte. */
  readonly tokens: readonly string[]
  readonly tokenTypes: readonly number[]
  readonly merges: readonly string[]
  readonly endOfTextId: number
  readonly endOfTurnId: number
}

/** Builds the vocabulary. */
export function byteVocabulary(): ByteVocabulary {
  const bytes = gpt2ByteAlphabet()
  return {
    tokens: [...bytes, ...specialTokens],
    tokenTypes: [...bytes.map(() => normalTokenType), ...specialTokens.map(() => controlTokenType)],
    // llama.cpp refuses an empty list of merges. The bytes C0 and C1 never occur in UTF-8, so this merge never applies.
    merges: [`${bytes[0xc0]} ${bytes[0xc1]}`],
    endOfTextId: bytes.length + specialTokens.indexOf('<|endoftext|>'),
    endOfTurnId: bytes.length + specialTokens.indexOf('<|im_end|>'),
  }
}

/** The printable character that stands for each byte: itself where it is printable, else one from U+0100 upwards. */
export function gpt2ByteAlphabet(): readonly string[] {
  let next = 0x100
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++))
}

function isPrintable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
}
