import { describe, expect, test } from '@jest/globals'
import { assertId, escapeLine, toRecord } from '../../../src/sessions/redis/session-text.ts'
import { alice, sessionKey } from '../../contract/sessions/store-under-test.ts'

const lines = (change: Readonly<Record<number, string>> = {}): string => {
  const text = [
    'a2',
    'rest',
    'name',
    '1000',
    '2000',
    '1',
    '2',
    '3',
    '4',
    '5',
    'sealed',
    'model',
    'pod',
    '',
    '',
    '',
    '',
    '',
  ]
  return text.map((line, index) => change[index + 1] ?? line).join('\n')
}

describe('the text of a session', () => {
  test.each([
    { name: 'plain', text: 'llama-3' },
    { name: 'with line feeds', text: 'a\nb\r\n' },
    { name: 'with quotes and backslashes', text: '"\\n\\"' },
    { name: 'with NULs', text: '\0' },
    { name: 'of many scripts', text: 'é漢🦙' },
    { name: 'with half a pair', text: '\ud800' },
  ])('keeps a model $name on one line', ({ text }) => {
    const line = escapeLine(text)

    expect(line).not.toContain('\n')
    expect(toRecord([sessionKey('s'), lines({ 12: line }), null], alice).model).toBe(text)
  })

  test.each([
    { name: 'too few lines', text: lines().split('\n').slice(0, 17).join('\n') },
    { name: 'too many lines', text: `${lines()}\n` },
    { name: 'a number with a sign', text: lines({ 4: '-1' }) },
    { name: 'a number with too many digits', text: lines({ 8: '1'.repeat(16) }) },
    { name: 'no number', text: lines({ 7: '' }) },
  ])('is not read with $name', ({ text }) => {
    expect(() => toRecord([sessionKey('s'), text, null], alice)).toThrow('A session script answered without')
  })

  test.each([
    { name: 'in the text', text: lines({ 14: 'artefact', 15: '3 4 5 a\\nb c' }), value: null },
    { name: 'in a key of its own', text: lines({ 14: 'artefact' }), value: '3 4 5 a\\nb c' },
  ])('tells of an artefact whose record stands $name', ({ text, value }) => {
    const kv = { artefactId: 'artefact', turn: 3, tokens: 4, bytes: 5, payload: 'a\nb c' }

    expect(toRecord([sessionKey('s'), text, value], alice).kv).toEqual(kv)
  })

  test.each([{ snapshot: undefined }, { snapshot: [] }, { snapshot: [1, lines()] }, { snapshot: 'text' }])(
    'is not read from $snapshot',
    ({ snapshot }) => {
      expect(() => toRecord(snapshot, alice)).toThrow('A session script answered without')
    },
  )

  test.each([{ id: '' }, { id: 'a b' }, { id: 'a\nb' }, { id: '\t' }, { id: 'a\u001eb' }])(
    'takes no id like $id',
    ({ id }) => {
      expect(() => assertId(id)).toThrow('An id is empty, or contains white space or control characters')
    },
  )

  test.each([{ record: null }, { record: '' }, { record: '1 x 3 payload' }])(
    'has no artefact without its record: $record',
    ({ record }) => {
      expect(toRecord([sessionKey('s'), lines({ 14: 'artefact' }), record], alice).kv).toBeUndefined()
    },
  )
})
