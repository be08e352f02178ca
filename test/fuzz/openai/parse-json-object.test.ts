import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { parseJsonObject } from '../../../src/openai/parse-json-object.ts'
import { countModelKeys } from '../../../src/openai/scan-json.ts'

const unlimited = { maxJsonDepth: Number.POSITIVE_INFINITY, maxJsonKeys: Number.POSITIVE_INFINITY }

type Outcome = { readonly body: ReadonlyMap<string, unknown> } | { readonly code: string }

const outcomeOf = (text: Uint8Array, limits = unlimited): Outcome => {
  try {
    return { body: parseJsonObject(Buffer.from(text), limits) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { code: error.code }
  }
}

/** What the platform's own decoder and parser say of the bytes. */
const referenceOf = (text: Uint8Array): Outcome => {
  let decoded: string
  try {
    decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text)
  } catch {
    return { code: 'invalid_encoding' }
  }
  try {
    const value: unknown = JSON.parse(decoded)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { body: new Map(Object.entries(value)) }
    }
  } catch {
    // Not JSON: the same answer as for JSON that is no object.
  }
  return { code: 'invalid_json' }
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const keysOf = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, member) => sum + keysOf(member), own)
}

const containersOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce((sum: number, member) => sum + containersOf(member), 1)
    : 0

/** What the limit on keys is held against. */
const countOf = (value: unknown): number => Math.max(keysOf(value), containersOf(value))

const textOf = (value: unknown, indent: number): Buffer => Buffer.from(JSON.stringify(value, null, indent))

const jsonValue = fc.jsonValue({ depthSize: 'large', stringUnit: 'binary' })
const jsonText = fc
  .tuple(fc.oneof(jsonValue, fc.dictionary(fc.string({ unit: 'binary' }), jsonValue)), fc.nat(3))
  .map(([value, indent]) => textOf(value, indent))

/** JSON with a byte put in, taken out or changed: nearly right is where parsers differ. */
const damagedText = fc
  .tuple(jsonText, fc.nat(), fc.constantFrom(...Buffer.from('{}[]",:\\ue0 \n\0\xff', 'latin1')), fc.nat(2))
  .map(([text, position, byte, edit]) => {
    const at = position % (text.length + 1)
    const rest = edit === 0 ? text.subarray(at) : text.subarray(at + 1)
    return Buffer.concat([text.subarray(0, at), edit === 1 ? Buffer.alloc(0) : Buffer.from([byte]), rest])
  })

describe('any JSON text', () => {
  test('is parsed as JSON.parse does, within limits on levels and members', () => {
    const limits = { maxJsonDepth: 3, maxJsonKeys: 5 }
    fc.assert(
      fc.property(jsonText, (text) => {
        const value: unknown = JSON.parse(text.toString())
        const exact = { maxJsonDepth: depthOf(value), maxJsonKeys: countOf(value) }
        const isAbove = exact.maxJsonDepth > limits.maxJsonDepth || exact.maxJsonKeys > limits.maxJsonKeys
        const reference = referenceOf(text)

        expect(outcomeOf(text)).toEqual(reference)
        expect(outcomeOf(text, limits)).toEqual(isAbove ? { code: 'json_too_complex' } : reference)
        expect(countModelKeys(text, exact)).toBeDefined()
        for (const name of ['maxJsonDepth', 'maxJsonKeys'] as const) {
          const isBounded = countModelKeys(text, { ...exact, [name]: exact[name] - 1 }) !== undefined
          expect(isBounded).toBe(exact[name] === 0)
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('with two models is refused, however their keys are escaped', () => {
    const spelling = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }).map((escaped) =>
      Array.from('model')
        .map((letter, at) => (escaped[at] ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter))
        .join(''),
    )
    const key = fc.oneof(spelling, fc.constantFrom('a', 'models', 'mode', '\\\\u006dodel'))
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.jsonValue()), { maxLength: 6 }), (members) => {
        const text = `{${members.map(([name, value]) => `"${name}": ${JSON.stringify(value)}`).join(' , ')}}`
        const models = members.filter(([name]) => JSON.parse(`"${name}"`) === 'model').length
        expect(countModelKeys(Buffer.from(text), unlimited)).toBe(models)
        expect(outcomeOf(Buffer.from(text))).toEqual(
          models > 1 ? { code: 'duplicate_key' } : referenceOf(Buffer.from(text)),
        )
      }),
      { numRuns: 500 },
    )
  })
})

test('any other bytes are refused as TextDecoder and JSON.parse refuse them', () => {
  const text = fc.string().map((some) => Buffer.from(some))
  fc.assert(
    fc.property(fc.oneof(damagedText, fc.uint8Array({ maxLength: 200 }), text), (bytes) => {
      // A damaged text may hold "model" twice, which JSON.parse allows.
      expect([referenceOf(bytes), { code: 'duplicate_key' }]).toContainEqual(outcomeOf(bytes))
    }),
    { numRuns: 3000 },
  )
})
