import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { parseJsonObject } from '../../../src/openai/parse-json-object.ts'
import { scanJson } from '../../../src/openai/scan-json.ts'

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

const textOf = (value: fc.JsonValue, indent: number): Buffer => Buffer.from(JSON.stringify(value, null, indent))

const jsonValue = fc.jsonValue({ depthSize: 'large', stringUnit: 'binary' })
const jsonText = fc.tuple(jsonValue, fc.nat(3)).map(([value, indent]) => textOf(value, indent))

/** JSON with a byte put in, taken out or changed: nearly right is where parsers differ. */
const damagedText = fc
  .tuple(jsonText, fc.nat(), fc.constantFrom(...Buffer.from('{}[]",:\\ue0 \n\0\xff', 'latin1')), fc.nat(2))
  .map(([text, position, byte, edit]) => {
    const at = position % (text.length + 1)
    const rest = edit === 0 ? text.subarray(at) : text.subarray(at + 1)
    return Buffer.concat([text.subarray(0, at), edit === 1 ? Buffer.alloc(0) : Buffer.from([byte]), rest])
  })

describe('parseJsonObject', () => {
  test('accepts and refuses every JSON text as JSON.parse does', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        expect(outcomeOf(text)).toEqual(referenceOf(text))
      }),
      { numRuns: 1000 },
    )
  })

  test('reads every JSON object to the same members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), jsonValue), fc.nat(3), (object, indent) => {
        const text = textOf(object, indent)
        expect(outcomeOf(text)).toEqual({ body: new Map(Object.entries(JSON.parse(text.toString()))) })
      }),
      { numRuns: 500 },
    )
  })

  test('answers any bytes, and only with what the platform says of them', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          damagedText,
          fc.uint8Array({ maxLength: 200 }),
          fc.string().map((text) => Buffer.from(text)),
        ),
        (text) => {
          // A damaged text may hold "model" twice, which the platform does not mind.
          const allowed = [referenceOf(text), { code: 'duplicate_key' }]
          expect(allowed).toContainEqual(outcomeOf(text))
        },
      ),
      { numRuns: 3000 },
    )
  })

  test('finds a second model however its key is escaped', () => {
    const spelling = fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }).map((escaped) =>
      Array.from('model')
        .map((letter, at) => (escaped[at] ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter))
        .join(''),
    )
    const member = fc.tuple(fc.oneof(spelling, fc.constantFrom('a', 'models', 'mode', '\\\\u006dodel')), jsonValue)
    fc.assert(
      fc.property(fc.array(member, { maxLength: 6 }), (members) => {
        const text = `{${members.map(([key, value]) => `"${key}": ${JSON.stringify(value)}`).join(' , ')}}`
        const models = members.filter(([key]) => JSON.parse(`"${key}"`) === 'model').length
        expect(scanJson(Buffer.from(text), unlimited)).toEqual({ kind: 'bounded', modelKeys: models })
        expect(outcomeOf(Buffer.from(text))).toEqual(
          models > 1 ? { code: 'duplicate_key' } : referenceOf(Buffer.from(text)),
        )
      }),
      { numRuns: 500 },
    )
  })
})

describe('scanJson', () => {
  test('counts levels, members and containers as the parsed value has them', () => {
    fc.assert(
      fc.property(jsonValue, fc.nat(3), (value, indent) => {
        const text = textOf(value, indent)
        const reference: unknown = JSON.parse(text.toString())
        const exact = { maxJsonDepth: depthOf(reference), maxJsonKeys: countOf(reference) }
        expect(scanJson(text, exact).kind).toBe('bounded')
        expect(scanJson(text, { ...exact, maxJsonDepth: exact.maxJsonDepth - 1 }).kind).toBe(
          exact.maxJsonDepth === 0 ? 'bounded' : 'too-complex',
        )
        expect(scanJson(text, { ...exact, maxJsonKeys: exact.maxJsonKeys - 1 }).kind).toBe(
          exact.maxJsonKeys === 0 ? 'bounded' : 'too-complex',
        )
      }),
      { numRuns: 1000 },
    )
  })

  test('a text within the limits is parsed, any other answered as too complex', () => {
    const limits = { maxJsonDepth: 3, maxJsonKeys: 5 }
    fc.assert(
      fc.property(fc.dictionary(fc.string(), jsonValue), (object) => {
        const tooComplex = depthOf(object) > limits.maxJsonDepth || countOf(object) > limits.maxJsonKeys
        const text = textOf(object, 0)
        expect(outcomeOf(text, limits)).toEqual(tooComplex ? { code: 'json_too_complex' } : referenceOf(text))
      }),
      { numRuns: 1000 },
    )
  })
})
