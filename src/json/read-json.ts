/**
 * A longer text counts as none: to parse one that is made to be slow takes some milliseconds, in which nothing else
 * happens. In UTF-16 units.
 */
export const maxJsonLength = 262_144

/** An array or object takes as long as many bytes of a text: a text has at most one for so many units of its limit. */
const unitsForEach = 12

/**
 * The parsed text, or undefined where it is not JSON, is longer than `maxLength`, or consists of arrays and objects all
 * through. The parser's own error would quote the text.
 */
export const readJson = (text: string, maxLength = maxJsonLength): unknown => {
  if (text.length > maxLength || opensMore(text, maxLength / unitsForEach)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a text has more than so many brackets and braces that open something, those in its texts included. */
const opensMore = (text: string, most: number): boolean => {
  if (text.length <= most) return false
  let opened = 0
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === bracket || unit === brace) opened += 1
  }
  return opened > most
}

const bracket = 0x5b
const brace = 0x7b
