import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type JsonLimits, type JsonScan, scanJsonObject } from '../../../src/json/scan-json-object.ts'
import { allSlices } from '../../support/all-slices.ts'

const unlimited: JsonLimits = { maxJsonDepth: Number.POSITIVE_INFINITY, maxJsonKeys: Number.POSITIVE_INFINITY }

const scan = (text: Uint8Array, limits = unlimited, wanted: readonly string[] = []): JsonScan =>
  allSlices(scanJsonObject(Buffer.from(text), limits, wanted))

/** What the platform's own decoder and parser say of the bytes. */
const kindOf = (text: Uint8Array): JsonScan['kind'] => {
  let decoded: string
  try {
    decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text)
  } catch {
    return 'not-utf8'
  }
  try {
    const value: unknown = JSON.parse(decoded)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? 'object' : 'other-json'
  } catch {
    return 'not-json'
  }
}

const children = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : []
const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null
const depthOf = (value: unknown): number => (isContainer(value) ? 1 + Math.max(0, ...children(value).map(depthOf)) : 0)
const sumOf = (value: unknown, own: (value: unknown) => number): number =>
  children(value).reduce((sum: number, child) => sum + sumOf(child, own), own(value))
const keysOf = (value: unknown): number => sumOf(value, (own) => (Array.isArray(own) ? 0 : children(own).length))
const containersOf = (value: unknown): number => sumOf(value, (own) => (isContainer(own) ? 1 : 0))
const valuesOf = (value: unknown): number => sumOf(value, () => 1)

const textOf = (value: unknown, indent: number): Buffer => Buffer.from(JSON.stringify(value, null, indent))

const jsonValue = fc.jsonValue({ depthSize: 'large', stringUnit: 'binary' })
const jsonText = fc
  .tuple(fc.oneof(jsonValue, fc.dictionary(fc.string({ unit: 'binary' }), jsonValue)), fc.nat(3))
  .map(([value, indent]) => textOf(value, indent))

/** JSON with a byte put in, taken out or changed: nearly right is where parsers differ. */
const damagedText = fc
  .tuple(jsonText, fc.nat(), fc.constantFrom(...Buffer.from('{}[]",:\\ue0-+.1 \n\0\xff', 'latin1')), fc.nat(2))
  .map(([text, position, byte, edit]) => {
    const at = position % (text.length + 1)
    const rest = edit === 0 ? text.subarray(at) : text.subarray(at + 1)
    return Buffer.concat([text.subarray(0, at), edit === 1 ? Buffer.alloc(0) : Buffer.from([byte]), rest])
  })
const nearlyNumbers = fc
  .array(fc.constantFrom('-', '+', '0', '1', '9', '.', 'e', 'E', 't', 'true', 'null', 'fals', 'e', ' '), {
    maxLength: 6,
  })
  .map((parts) => Buffer.from(parts.join('')))
/** Long enough for several slices, with a character at every place of their borders. */
const longText = fc
  .tuple(
    jsonText,
    fc.constantFrom(' ', '\n', 'é', '€', '😀', '\\u00e9', '1', '\xff'),
    fc.integer({ min: 65_500, max: 65_570 }),
  )
  .map(([text, filler, times]) => Buffer.from(`{"a":"${filler.repeat(times)}","b":${text.toString()}}`))

test('any bytes are what TextDecoder and JSON.parse take them for', () => {
  const text = fc.string().map((some) => Buffer.from(some))
  fc.assert(
    fc.property(fc.oneof(jsonText, damagedText, nearlyNumbers, fc.uint8Array({ maxLength: 200 }), text), (bytes) => {
      expect(scan(bytes).kind).toBe(kindOf(bytes))
    }),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(longText, fc.nat(), fc.boolean(), (bytes, at, isCut) => {
      const given = isCut ? bytes.subarray(0, at % bytes.length) : bytes
      expect(scan(given).kind).toBe(kindOf(given))
    }),
    { numRuns: 60 },
  )
})

test('limits on levels, and on members, arrays and objects, hold exactly', () => {
  fc.assert(
    fc.property(jsonText, (text) => {
      const value: unknown = JSON.parse(text.toString())
      const exact = { maxJsonDepth: depthOf(value), maxJsonKeys: Math.max(keysOf(value), containersOf(value)) }
      expect(scan(text, exact).kind).toBe(kindOf(text))
      for (const name of ['maxJsonDepth', 'maxJsonKeys'] as const) {
        const isBeyond = scan(text, { ...exact, [name]: exact[name] - 1 }).kind === 'too-complex'
        expect(isBeyond).toBe(exact[name] > 0)
      }
    }),
    { numRuns: 400 },
  )
})

describe('the members of the outermost object', () => {
  const spelling = (name: string) =>
    fc
      .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
      .map((escaped) =>
        Array.from(name, (letter, at) => (escaped[at] ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter)).join(''),
      )
  const wanted = ['model', 'prompt']
  const key = fc.oneof(
    ...wanted.map(spelling),
    fc.constantFrom('', 'a', 'models', 'mode', '\\\\u006dodel', 'm\\n', '"model"'.slice(1, -1)),
  )
  const white = fc.constantFrom('', ' ', '\n\t ', '\r')

  test('are found by their names, however these are escaped, with the last value of each', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(key, jsonValue, white), { maxLength: 8 }), white, (given, space) => {
        const members = given.map(
          ([name, value, blank]) => `${blank}"${name}"${blank}:${blank}${JSON.stringify(value)}`,
        )
        const text = Buffer.from(`${space}{${members.join(`${space},`)}${space}}${space}`)
        const named = given.map(([name, value]) => ({
          name: JSON.parse(`"${name}"`),
          value: JSON.parse(JSON.stringify(value)),
        }))

        const found = scan(text, unlimited, wanted)

        if (found.kind !== 'object') throw new Error(`it is ${found.kind}`)
        expect(found.values).toBe(1 + named.reduce((sum, { value }) => sum + valuesOf(value), 0))
        const described = [...found.members].map(([name, { start, end, ...rest }]) => ({
          name,
          value: JSON.parse(text.toString('utf8', start, end)),
          isTight: !isContainer(JSON.parse(text.toString('utf8', start, end))) || text[end - 1] !== 0x20,
          ...rest,
        }))
        expect(described).toHaveLength(wanted.filter((name) => named.some((member) => member.name === name)).length)
        for (const { name, value, isTight, ...rest } of described) {
          const all = named.filter((member) => member.name === name)
          const last: unknown = all.at(-1)?.value
          expect(value).toEqual(last)
          expect(isTight).toBe(true)
          const items = children(last)
          expect(rest).toEqual({ count: all.length, items: items.length, hasScalars: !items.every(isContainer) })
        }
      }),
      { numRuns: 700 },
    )
  })
})

test.each([
  { name: 'as a value', text: '{"a":"model","b":"model"}' },
  { name: 'deeper down', text: '{"tool":{"model":1},"list":[{"model":2}]}' },
  { name: 'within a text', text: '{"prompt":"\\"model\\":\\"a\\""}' },
  { name: 'as the beginning of a longer key', text: '{"models":1,"model_":2}' },
])('model is no member: $name', ({ text }) => {
  expect(scan(Buffer.from(text), unlimited, ['model'])).toMatchObject({ kind: 'object', members: new Map() })
})
