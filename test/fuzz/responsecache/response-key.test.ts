import { isDeepStrictEqual } from 'node:util'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { canonicalJson } from '../../../src/responsecache/response-key.ts'

type Json = null | boolean | string | number | readonly Json[] | { readonly [name: string]: Json }

const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.constantFrom('__proto__', '', '1'))
const anyNumber = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ min: -1e15, max: 1e15, noNaN: true }).map((value) => (value === 0 ? 0 : value)),
)

const { object: anyObject } = fc.letrec<{ json: Json; object: Readonly<Record<string, Json>> }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<Json[]>(null, true, false),
    anyText,
    anyNumber,
    fc.array(tie('json'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc
    .uniqueArray(fc.tuple(anyText, tie('json')), { maxLength: 5, selector: ([name]) => name })
    .map((members) => Object.fromEntries(members)),
}))

/** Decisions on how a text is spelt: an endless list of small numbers. */
const anySpelling = fc.array(fc.nat(100), { minLength: 1, maxLength: 50 }).map((seed) => {
  let at = 0
  return (): number => seed[at++ % seed.length] ?? 0
})

const spaces = ['', ' ', '\n', '\t\r\n  ']

/** The value as JSON, with its members in any order, spaces anywhere, and escapes and exponents at will. */
const write = (value: Json, next: () => number): string => {
  const space = (): string => spaces[next() % spaces.length] ?? ''
  const text = (content: string): string => (next() % 2 === 0 ? JSON.stringify(content) : `"${escaped(content)}"`)
  const all = (of: Json): string => {
    if (of === null || typeof of === 'boolean') return String(of)
    if (typeof of === 'string') return text(of)
    if (typeof of === 'number') return next() % 2 === 0 ? String(of) : of.toExponential()
    if (Array.isArray(of)) return `[${space()}${of.map((item) => `${all(item)}${space()}`).join(`,${space()}`)}]`
    const members = Object.entries<Json>(of).sort(() => (next() % 3) - 1)
    return `{${space()}${members.map(([name, member]) => `${text(name)}${space()}:${space()}${all(member)}${space()}`).join(`,${space()}`)}}`
  }
  return `${space()}${all(value)}${space()}`
}

const escaped = (content: string): string =>
  Array.from(
    { length: content.length },
    (_, index) => `\\u${content.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')

const canonical = (text: string): string | undefined =>
  canonicalJson(new Map(Object.entries<unknown>(JSON.parse(text))), { without: new Set() })

test('texts that differ only in order, space, escapes and exponents have one canonical text', () => {
  fc.assert(
    fc.property(anyObject, anySpelling, anySpelling, (value, one, other) => {
      const text = canonical(write(value, one))
      expect(canonical(write(value, other))).toBe(text)
      expect(JSON.parse(text ?? '')).toEqual(value)
    }),
    { numRuns: 1000 },
  )
})

test('values that differ in one member have different canonical texts', () => {
  fc.assert(
    fc.property(
      anyObject,
      fc.oneof(anyObject, anyText, anyNumber),
      anyText,
      anySpelling,
      (value, member, name, next) => {
        const changed = Object.fromEntries([
          ...Object.entries(value).filter(([other]) => other !== name),
          [name, member],
        ])
        const isSame = isDeepStrictEqual(value, changed)
        expect(canonical(write(value, next)) === canonical(write(changed, next))).toBe(isSame)
      },
    ),
    { numRuns: 1000 },
  )
})
