import { GatewayError } from './gateway-error.ts'

export type BodySplicer = ReturnType<typeof createBodySplicer>

export interface SpliceOptions {
  /** JSON members without the braces, appended last: the last member of a name wins in engines. Undefined: none. */
  readonly splice: string | undefined
  readonly maxBytes: number
}

const braceOpen = 0x7b
const braceClose = 0x7d
const noBytes = Buffer.alloc(0)

/**
 * Appends members to a JSON object that passes in pieces. It keeps only the end of the object, which it does not parse.
 * A body that was no strict JSON object before is none afterwards.
 */
export const createBodySplicer = ({ splice, maxBytes }: SpliceOptions) => {
  let bytesSeen = 0
  let hasBegun = false
  let hasMembers = false
  /** From a closing brace on, with nothing but white space behind it. */
  let held: Buffer[] = []

  /** Where the object's content begins in this piece; undefined: it has not begun. */
  const contentStart = (bytes: Buffer): number | undefined => {
    if (hasBegun) return 0
    const start = firstVisible(bytes)
    if (start === bytes.length) return undefined
    if (bytes[start] !== braceOpen) throw new GatewayError('invalid_json')
    hasBegun = true
    return start + 1
  }

  return {
    /** Returns the bytes that may go on. @throws GatewayError `invalid_json` (no object begins), `request_too_large` */
    piece: (bytes: Buffer): Buffer => {
      bytesSeen += bytes.length
      if (bytesSeen > maxBytes) throw new GatewayError('request_too_large')
      const start = contentStart(bytes)
      if (start === undefined) return bytes
      const last = lastVisible(bytes, start)
      if (last < start) {
        if (held.length === 0) return bytes
        held.push(bytes)
        return noBytes
      }
      const before = held
      const isEnd = bytes[last] === braceClose
      held = isEnd ? [bytes.subarray(last)] : []
      hasMembers ||= before.length > 0 || !isEnd || lastVisible(bytes, start, last) >= start
      const passing = isEnd ? bytes.subarray(0, last) : bytes
      return before.length === 0 ? passing : Buffer.concat([...before, passing])
    },
    /** Returns the last bytes. @throws GatewayError `invalid_json` unless an object ends here */
    end: (): Buffer => {
      if (held.length === 0) throw new GatewayError('invalid_json')
      return splice === undefined ? Buffer.concat(held) : Buffer.from(`${hasMembers ? ',' : ''}${splice}}`)
    },
  }
}

const isWhite = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const firstVisible = (bytes: Buffer, start = 0): number => {
  let at = start
  while (at < bytes.length && isWhite(bytes[at])) at += 1
  return at
}

/** Less than `start`: only white space from there to `end`. */
const lastVisible = (bytes: Buffer, start: number, end = bytes.length): number => {
  let at = end - 1
  while (at >= start && isWhite(bytes[at])) at -= 1
  return at
}

const modelKey = Buffer.from('"model"')
const quote = 0x22
const colon = 0x3a

/** Whether a JSON text names another model, and never the expected one. A name with escapes is left to the engine. */
export const namesOtherModel = (text: Buffer, expected: string): boolean => {
  const wanted = Buffer.from(expected).toString('latin1')
  let namesOther = false
  for (let at = text.indexOf(modelKey); at !== -1; at = text.indexOf(modelKey, at + 1)) {
    const colonAt = firstVisible(text, at + modelKey.length)
    const nameAt = firstVisible(text, colonAt + 1)
    const end = text.indexOf(quote, nameAt + 1)
    if (text[colonAt] !== colon || text[nameAt] !== quote || end === -1) continue
    const name = text.toString('latin1', nameAt + 1, end)
    if (name === wanted || name.includes('\\')) return false
    namesOther = true
  }
  return namesOther
}
