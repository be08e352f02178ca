/** The parsed text, or undefined where it is not JSON. The parser's own error would quote the text. */
export const readJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
