import { readJson } from '../json/read-json.ts'

/** Longest name of a model, in characters: names are kept and sent on with every turn. */
export const maxModelLength = 1024

/** Half a surrogate pair is no UTF-8: Envoy would refuse every reply that names the model. */
export const isModelName = (text: string): boolean =>
  text !== '' && text.length <= maxModelLength && !/\p{Cs}/u.test(text)

/** The first `model` of the outermost object in the beginning of a JSON text. Undefined: not there, or not a text. */
export const modelIn = (beginning: Buffer): string | undefined => {
  let depth = 0
  for (let at = 0; at < beginning.length; at += 1) {
    switch (beginning[at]) {
      case quote: {
        const end = endOfString(beginning, at)
        if (depth === 1 && isModelKey(beginning, at, end)) {
          const behind = beginning.toString('utf8', end + 1, end + 1 + maxModelLength)
          const [, literal] = /^[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")/s.exec(behind) ?? []
          const model = literal === undefined ? undefined : readJson(literal)
          if (typeof model === 'string' && model !== '') return model
        }
        at = end
        break
      }
      case 0x7b:
      case 0x5b:
        depth += 1
        break
      case 0x7d:
      case 0x5d:
        depth -= 1
        break
    }
  }
  return undefined
}

const quote = 0x22
const backslash = 0x5c

/** Each of the five letters may be written as `\uXXXX`. A parser that throws is too slow for keys that are no JSON. */
const isModelKey = (body: Buffer, start: number, end: number): boolean => {
  const length = end - start - 1
  if (length < 5 || length > 30) return false
  const key = body.toString('latin1', start + 1, end)
  return (
    key.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))) === 'model'
  )
}

/** Index of the closing quote, or of the last byte when there is none. */
const endOfString = (body: Buffer, start: number): number => {
  let end = body.indexOf(quote, start + 1)
  while (end !== -1 && isEscaped(body, end, start)) end = body.indexOf(quote, end + 1)
  return end === -1 ? body.length - 1 : end
}

const isEscaped = (body: Buffer, at: number, floor: number): boolean => {
  let before = at - 1
  while (before > floor && body[before] === backslash) before -= 1
  return (at - before) % 2 === 0
}
