import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { createBodySplicer, namesOtherModel, type SpliceOptions } from '../../../src/openai/splice-body.ts'
import { allSlices, countSlices } from '../../support/all-slices.ts'
import { piecesOf } from '../../support/pieces-of.ts'

const unlimited: SpliceOptions = { splice: undefined, maxBytes: Number.POSITIVE_INFINITY }

/** What goes on of a body that comes in these pieces, or why it does not. */
const outcomeOf = (pieces: readonly Buffer[], options: Partial<SpliceOptions>): string => {
  const splicer = createBodySplicer({ ...unlimited, ...options })
  try {
    const passed = pieces.map((piece) => splicer.piece(piece))
    return Buffer.concat([...passed, splicer.end()]).toString('latin1')
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return error.code
  }
}

const ends = fc.array(fc.nat(), { maxLength: 12 })
const splice = fc.constantFrom(undefined, '"id_slot":-1,"cache_prompt":false')
const anyJson = fc
  .tuple(fc.dictionary(fc.constantFrom('model', 'a', '}'), fc.jsonValue()), fc.nat(2), fc.constantFrom('', ' \n', '\t'))
  .map(([value, indent, blank]) => `${blank}${JSON.stringify(value, null, indent)}${blank}`)
const anyText = fc.oneof(
  anyJson,
  fc.array(fc.constantFrom('"a":"b"', '{', '}', ' ', ',', '"x"')).map((texts) => texts.join('')),
  fc.string(),
)

test('a body gives the same outcome in whatever pieces it comes', () => {
  fc.assert(
    fc.property(anyText, ends, splice, (source, places, members) => {
      const text = Buffer.from(source)
      expect(outcomeOf(piecesOf(text, places), { splice: members })).toBe(outcomeOf([text], { splice: members }))
    }),
    { numRuns: 2000 },
  )
})

test('a JSON object gets the members as its last, and anything else stays what it is', () => {
  fc.assert(
    fc.property(anyText, ends, (source, places) => {
      const outcome = outcomeOf(piecesOf(source, places), { splice: '"added":1' })
      const before = objectOf(source)
      if (before !== undefined) expect(Object.entries(objectOf(outcome) ?? {}).at(-1)).toEqual(['added', 1])
      expect(objectOf(outcome)).toEqual(before === undefined ? undefined : { ...before, added: 1 })
    }),
    { numRuns: 2000 },
  )
})

const objectOf = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'latin1').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

test.each([
  ['another model', '{"model":"n"}', true],
  ['another model in UTF-8', '{"model":"m\xe9"}', true],
  ['another model far behind its key', `{"model"${' '.repeat(3000)}:"n"}`, true],
  ['two other models, one of them inside', '{"a":{"model":"n"},"model":""}', true],
  ['no model', '{"a":1}', false],
  ['a model in escapes', '{"model":"n","model":"\\u006e"}', false],
  ['the model, later', '{"model":"n","model":"m\xe8"}', false],
  ['the model, before', '{"model":"m\xe8","model":"n"}', false],
  ['the model, inside', '{"model":"n","a":[{"model" :\n"m\xe8"}]}', false],
  ['the model behind a text of that name', '{"a":"model","model":"m\xe8"}', false],
  ['a model that is no text', '{"model":5}', false],
  ['a model without an end', '{"model":"n', false],
])('a body that is to name a model: %s', (_name, text, isOther) => {
  expect(allSlices(namesOtherModel(Buffer.from(text), 'm\xe8'))).toBe(isOther)
})

test.each([
  ['models', '"model":"m",'],
  ['models with blanks', `"model"${' '.repeat(999)}:"m",`],
  ['quotes', '"'],
  ['beginnings of the key', '"model'],
])('a body of 1 MiB is searched in slices: %s', (_name, text) => {
  const body = Buffer.from(text.repeat(2 ** 20 / text.length))
  expect(countSlices(namesOtherModel(body, 'n')).slices).toBeGreaterThanOrEqual(16)
})

test('blanks behind a key are passed over in slices', () => {
  const body = Buffer.from(`{"model"${' '.repeat(2 ** 20)}:"n"}`)
  const { result, slices } = countSlices(namesOtherModel(body, 'm'))
  expect(result).toBe(true)
  expect(slices).toBeGreaterThanOrEqual(32)
})

test('a key on the border of two slices is found', () => {
  for (let shift = 0; shift < 12; shift += 1) {
    const body = Buffer.from(`${' '.repeat(65_536 - shift)}"model":"n"`)
    expect(allSlices(namesOtherModel(body, 'm'))).toBe(true)
  }
})

test('a body that is too large is refused before its end', () => {
  const splicer = createBodySplicer({ ...unlimited, maxBytes: 10 })
  splicer.piece(Buffer.from('{"a":'))
  expect(() => splicer.piece(Buffer.from('123456'))).toThrow('The request body is too large.')
})
