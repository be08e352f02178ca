import type { SlicedWork } from '../async/slices.ts'
import { GatewayError } from './gateway-error.ts'
import { KeptBytes } from './kept-bytes.ts'

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
export interface BodySplicer {
  /** Returns the bytes that may go on. @throws GatewayError `invalid_json` (no object begins), `request_too_large` */
  piece(bytes: Buffer): Buffer
  /** Memory of the end that is kept. */
  keptBytes(): number
  /** Returns the last bytes. @throws GatewayError `invalid_json` unless an object ends here */
  end(): Buffer
}

export const createBodySplicer = ({ splice, maxBytes }: SpliceOptions): BodySplicer => {
  let bytesSeen = 0
  let hasBegun = false
  let hasMembers = false
  /** From a closing brace on, with nothing but white space behind it. */
  const held = new KeptBytes()

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
    piece: (bytes) => {
      bytesSeen += bytes.length
      if (bytesSeen > maxBytes) throw new GatewayError('request_too_large')
      const start = contentStart(bytes)
      if (start === undefined) return bytes
      const last = lastVisible(bytes, start)
      if (last < start) {
        if (held.length === 0) return bytes
        held.add(bytes)
        return noBytes
      }
      const before = held.take()
      const isEnd = bytes[last] === braceClose
      if (isEnd) held.add(bytes.subarray(last))
      hasMembers ||= before.length > 0 || !isEnd || lastVisible(bytes, start, last) >= start
      const passing = isEnd ? bytes.subarray(0, last) : bytes
      return before.length === 0 ? passing : Buffer.concat([...before, passing])
    },
    keptBytes: () => held.takenBytes,
    end: () => {
      if (held.length === 0) throw new GatewayError('invalid_json')
      const kept = held.take()
      return splice === undefined ? Buffer.concat(kept) : Buffer.from(`${hasMembers ? ',' : ''}${splice}}`)
    },
  }
}

const isWhite = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const firstVisible = (bytes: Buffer): number => {
  let at = 0
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
const backslash = 0x5c
/** Bytes that are searched at once: at most 5 ms. */
const sliceBytes = 65_536

/** Whether a text names another model, and never the expected one. Escaped names are left to the engine. In slices. */
export function* namesOtherModel(text: Buffer, expected: string): SlicedWork<boolean> {
  const wanted = Buffer.from(expected)
  let namesOther = false
  for (let start = 0; start < text.length; start += sliceBytes) {
    if (start > 0) yield
    // A key that begins in this slice may end in the next one.
    const slice = text.subarray(start, start + sliceBytes + modelKey.length - 1)
    for (let found = slice.indexOf(modelKey); found !== -1; found = slice.indexOf(modelKey, found + 1)) {
      const colonAt = yield* visibleFrom(text, start + found + modelKey.length)
      if (text[colonAt] !== colon) continue
      const nameAt = yield* visibleFrom(text, colonAt + 1)
      const end = text.indexOf(quote, nameAt + 1)
      if (text[nameAt] !== quote || end === -1) continue
      const name = text.subarray(nameAt + 1, end)
      if (name.equals(wanted) || name.includes(backslash)) return false
      namesOther = true
    }
  }
  return namesOther
}

/** The first byte from `start` on that is no white space. */
function* visibleFrom(text: Buffer, start: number): SlicedWork<number> {
  for (let at = start; ; at += sliceBytes) {
    const slice = text.subarray(at, at + sliceBytes)
    const visible = firstVisible(slice)
    if (visible < slice.length || slice.length < sliceBytes) return at + visible
    yield
  }
}
