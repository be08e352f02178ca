import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { canonicalJson } from '../../../src/responsecache/canonical-json.ts'

type Json =
  | null
  | boolean
  | string
  | Written
  | readonly Json[]
  | { readonly members: readonly (readonly [string, Json])[] }
/** A number as a text has it. */
type Written = { readonly number: string }

const anyNumber = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.bigInt({ min: 0n, max: 10n ** 20n }),
    fc.constantFrom('', '.0', '.50', 'e2', 'E-3'),
  )
  .map(([sign, digits, rest]): Written => ({ number: `${sign}${digits}${rest}` }))
const anyText = fc.string({ unit: 'binary', maxLength: 12 })

const { object: anyObject } = fc.letrec<{ json: Json; object: Json }>((tie) => ({
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
    .map((members): Json => ({ members })),
}))

/** Decisions on how a text is spelt: an endless list of small numbers. */
const spelling = (seed: readonly number[]): (() => number) => {
  let at = 0
  return () => seed[at++ % Math.max(1, seed.length)] ?? 0
}

const spaces = ['', ' ', '\n', '\t\r\n  ']

/** The value as JSON, with its members in any order, spaces anywhere and escapes at will. */
const write = (value: Json, next: () => number): string => {
  const space = (): string => spaces[next() % spaces.length] ?? ''
  const text = (content: string): string => (next() % 2 === 0 ? JSON.stringify(content) : `"${escaped(content)}"`)
  const all = (of: Json): string => {
    if (of === null || typeof of === 'boolean') return String(of)
    if (typeof of === 'string') return text(of)
    if ('number' in of) return of.number
    if ('members' in of) {
      const members = [...of.members].sort(() => (next() % 3) - 1)
      return `{${space()}${members.map(([name, member]) => `${text(name)}${space()}:${space()}${all(member)}${space()}`).join(`,${space()}`)}}`
    }
    return `[${space()}${of.map((item) => `${all(item)}${space()}`).join(`,${space()}`)}]`
  }
  return `${space()}${all(value)}${space()}`
}

const escaped = (content: string): string =>
  Array.from(
    { length: content.length },
    (_, index) => `\\u${content.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')

const none = new Set<string>()
const canonical = (text: string): string | undefined => canonicalJson(text, { without: none })
const anySpelling = fc.array(fc.nat(100), { minLength: 1, maxLength: 50 }).map(spelling)

test('texts that differ in order, space and escapes alone have one canonical text, which is their own', () => {
  fc.assert(
    fc.property(anyObject, anySpelling, anySpelling, (value, one, other) => {
      const [first, second] = [write(value, one), write(value, other)]
      expect(JSON.parse(first)).toEqual(JSON.parse(second))
      const text = canonical(first)
      expect(text).toBe(canonical(second))
      expect(text).toBeDefined()
      expect(JSON.parse(text ?? '')).toEqual(JSON.parse(first))
      expect(canonical(text ?? '')).toBe(text)
    }),
    { numRuns: 3000 },
  )
})

/** The same for one value and no other: written in one way only. */
const fingerprint = (value: Json): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return `s${JSON.stringify(value)}`
  if ('number' in value) return `n${value.number}`
  if (!('members' in value)) return `[${value.map(fingerprint).join()}]`
  const members = value.members.map(([name, member]) => `${JSON.stringify(name)}=${fingerprint(member)}`)
  return `{${members.sort().join()}}`
}

test('texts that differ in anything else do not', () => {
  fc.assert(
    fc.property(anyObject, anyObject, anySpelling, (one, other, next) => {
      const areOne = fingerprint(one) === fingerprint(other)
      expect(canonical(write(one, next)) === canonical(write(other, next))).toBe(areOne)
    }),
    { numRuns: 3000 },
  )
})

test('no change of a value goes unseen', () => {
  fc.assert(
    fc.property(anyObject, anyObject, anyText, anySpelling, (value, replacement, name, next) => {
      const members = typeof value === 'object' && value !== null && 'members' in value ? value.members : []
      const rest = members.filter(([other]) => other !== name)
      const before = members.find(([other]) => other === name)?.[1]
      const changed: Json = { members: [...rest, [name, replacement]] }
      const isChange = before === undefined || fingerprint(before) !== fingerprint(replacement)
      expect(canonical(write(value, next)) !== canonical(write(changed, next))).toBe(isChange)
    }),
    { numRuns: 3000 },
  )
})
