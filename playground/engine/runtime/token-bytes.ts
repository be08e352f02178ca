// From tokens back to bytes. A token may be part of a character, so text is put together from bytes, not from the
// tokens' own texts.
import { gpt2ByteAlphabet } from '../gguf/byte-vocabulary.ts'

/**
 * Kinds of vocabulary by their `tokenizer.ggml.model`: `gpt2` spells bytes in its alphabet, the others spell text, with
 * `▁` as space.
 */
const byteAlphabetModel = 'gpt2'
const hexByteToken = /^<0x([0-9A-F]{2})>$/

/** Returns the bytes of the token whose vocabulary entry is `entry`. */
export type TokenBytes = (entry: string) => Uint8Array

/** Creates the decoder for a vocabulary of the given kind. */
export function createTokenBytes(tokenizerModel: string): TokenBytes {
  return tokenizerModel === byteAlphabetModel ? createAlphabetDecoder() : decodeTextEntry
}

function createAlphabetDecoder(): TokenBytes {
  const byteOf = new Map(gpt2ByteAlphabet().map((character, byte) => [character, byte]))
  return (entry) => {
    const bytes = Array.from(entry, (character) => byteOf.get(character))
    // Tokens that were added to the vocabulary later are spelt as text.
    return bytes.every((byte) => byte !== undefined) ? Uint8Array.from(bytes) : Buffer.from(entry)
  }
}

function decodeTextEntry(entry: string): Uint8Array {
  const hexByte = hexByteToken.exec(entry)?.[1]
  return hexByte === undefined ? Buffer.from(entry.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(hexByte, 16))
}
