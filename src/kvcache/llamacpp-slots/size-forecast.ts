/** Foretells how large a file will be, so that one that is too large need not be written to learn it. */
export interface SizeForecast {
  /** At least so many bytes, as far as is known; 0 for an engine that has stored nothing yet. */
  leastBytes(fingerprint: string, tokens: number): number
  /** An engine has written so many bytes for so many tokens. */
  seen(fingerprint: string, file: { readonly tokens: number; readonly bytes: number }): void
}

/** A file has a part that does not grow with the tokens, so that bytes per token of a short context say too much for a long one. */
const margin = 0.95

export const createSizeForecast = (): SizeForecast => {
  const bytesPerToken = new Map<string, number>()
  return {
    leastBytes: (fingerprint, tokens) => (bytesPerToken.get(fingerprint) ?? 0) * tokens * margin,
    seen: (fingerprint, { tokens, bytes }) => {
      const least = bytesPerToken.get(fingerprint) ?? Number.POSITIVE_INFINITY
      if (tokens > 0) bytesPerToken.set(fingerprint, Math.min(least, bytes / tokens))
    },
  }
}
