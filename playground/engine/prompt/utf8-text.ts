// Text from bytes that arrive in pieces: a character cut in two is held back until its rest arrives, a byte that fits
// nowhere becomes U+FFFD.

/** Puts text together from pieces of bytes. */
export interface Utf8Text {
  /** Text that is certain after this piece. */
  push(bytes: Uint8Array): string
  /** What is left at the end: nothing, or U+FFFD for a character that never became whole. */
  end(): string
}

/** Creates one for one answer. */
export function createUtf8Text(): Utf8Text {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  return {
    push: (bytes) => decoder.decode(bytes, { stream: true }),
    end: () => decoder.decode(),
  }
}
