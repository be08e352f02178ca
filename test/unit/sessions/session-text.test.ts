import { describe, expect, test } from '@jest/globals'
import { assertId, escapeLine, toRecord } from '../../../src/sessions/redis/session-text.ts'
import { alice, sessionKey } from '../../contract/sessions/store-under-test.ts'

const fields = 'a2 rest name 1000 2000 1 2 3 4 5 sealed model pod'.split(' ')

/** The 18 lines of a session, some of them changed. */
const lines = (change: Readonly<Record<number, string>> = {}): string =>
  Array.from({ length: 18 }, (_, index) => change[index + 1] ?? fields[index] ?? '').join('\n')

const snapshotOf = (text: string, value: string | null = null) => [sessionKey('s'), text, value]
const unreadable = 'A session script answered without'

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
    expect(toRecord(snapshotOf(lines({ 12: line })), alice).model).toBe(text)
  })

  test.each([
    { name: 'too few lines', text: lines().split('\n').slice(0, 17).join('\n') },
    { name: 'too many lines', text: `${lines()}\n` },
    { name: 'a number with a sign', text: lines({ 4: '-1' }) },
    { name: 'a number with too many digits', text: lines({ 5: '1'.repeat(16) }) },
    { name: 'no number', text: lines({ 7: '' }) },
  ])('with $name is rejected', ({ text }) => {
    expect(() => toRecord(snapshotOf(text), alice)).toThrow(unreadable)
  })

  test.each([
    { name: 'in the text', text: lines({ 14: 'artefact', 15: '3 4 5 a\\nb c' }), value: null },
    { name: 'in a key of its own', text: lines({ 14: 'artefact' }), value: '3 4 5 a\\nb c' },
  ])('has the artefact whose record is $name', ({ text, value }) => {
    const kv = { artefactId: 'artefact', turn: 3, tokens: 4, bytes: 5, payload: 'a\nb c' }

    expect(toRecord(snapshotOf(text, value), alice).kv).toEqual(kv)
  })

  test.each([{ snapshot: undefined }, { snapshot: [] }, { snapshot: [1, lines()] }, { snapshot: 'text' }])(
    'is rejected in a reply of $snapshot',
    ({ snapshot }) => {
      expect(() => toRecord(snapshot, alice)).toThrow(unreadable)
    },
  )

  test.each([{ id: '' }, { id: 'a b' }, { id: 'a\nb' }, { id: '\t' }, { id: 'a\u001eb' }])(
    'rejects the id "$id"',
    ({ id }) => {
      expect(() => assertId(id)).toThrow('An id is empty, or contains white space or control characters')
    },
  )

  test.each([{ record: null }, { record: '' }, { record: '1 x 3 payload' }])(
    'has no artefact with the record $record',
    ({ record }) => {
      expect(toRecord(snapshotOf(lines({ 14: 'artefact' }), record), alice).kv).toBeUndefined()
    },
  )
})
