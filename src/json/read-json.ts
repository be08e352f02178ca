/**
 * A longer text counts as none: to parse one that is made to be slow takes some 10 ms, in which nothing else happens.
 * In UTF-16 units.
 */
export const maxJsonLength = 262_144

/**
 * The parsed text, or undefined where it is not JSON, or longer than `maxLength`. The parser's own error would quote the
 * text.
 */
export const readJson = (text: string, maxLength = maxJsonLength): unknown => {
  if (text.length > maxLength) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
