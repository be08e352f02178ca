import { describe, expect, test } from '@jest/globals'
import type { KvTurn } from '../../../../src/kvcache/kv-connector.ts'
import {
  artefactIdIn,
  artefactIdOf,
  fileOf,
  formatPayload,
  isOfOtherEngine,
  isUnfinished,
  parsePayload,
  partOf,
} from '../../../../src/kvcache/llamacpp-slots/artefact.ts'

const session = 's-_'.repeat(15).slice(0, 43)
const turn = { session, tenant: 't', model: 'm', turnId: '1', pod: 'p:1' } as unknown as KvTurn

describe('artefactIdOf', () => {
  test.each([
    ['tenant', { ...turn, tenant: 'x' }, 'f'],
    ['model', { ...turn, model: 'x' }, 'f'],
    ['session', { ...turn, session: 'x' }, 'f'],
    ['turn', { ...turn, turnId: 'x' }, 'f'],
    ['engine', turn, 'x'],
    ['border between tenant and model', { ...turn, tenant: 't","m', model: '' }, 'f'],
  ])('differs with another %s', (_name, other, fingerprint) => {
    expect(artefactIdOf(other as KvTurn, fingerprint)).not.toBe(artefactIdOf(turn, 'f'))
  })

  test('does not depend on the pod, and can be read from the file name', () => {
    const id = artefactIdOf(turn, 'f')
    expect(artefactIdOf({ ...turn, pod: 'other:1' }, 'f')).toBe(id)
    expect(id).toMatch(/^(s-_){7}s[0-9a-f]{28}$/)
    expect(artefactIdIn(fileOf(id))).toBe(id)
  })
})

describe('isOfOtherEngine', () => {
  const id = artefactIdOf(turn, 'f')
  test.each([
    { name: 'the same engine is there', known: ['f'], id, expected: false },
    { name: 'one of several is the same', known: ['x', 'f'], id, expected: false },
    { name: 'only others are there', known: ['x', 'y'], id, expected: true },
    { name: 'its name tells of no engine', known: ['x'], id: 'ab'.repeat(20), expected: false },
  ])('is $expected where $name', ({ known, id: artefactId, expected }) => {
    expect(isOfOtherEngine(artefactId, known)).toBe(expected)
  })
})

describe('file names', () => {
  const file = fileOf(artefactIdOf(turn, 'f'))

  test.each([
    [file, false],
    [partOf(file), true],
    ['ctx-short.kv', true],
    [`x${file}`, false],
    ['notes.txt', false],
    ['.part', false],
  ])('isUnfinished(%j) is %s', (name, expected) => {
    expect(isUnfinished(name)).toBe(expected)
  })
})

describe('payload', () => {
  const file = fileOf('ab'.repeat(20))

  test.each([
    ['whole', { file, fingerprint: 'f', content: { bytes: 12, sha256: 'cd' } }],
    ['announced', { file, fingerprint: 'f', content: undefined }],
  ])('%s is read as it was written', (_name, artefact) => {
    expect(parsePayload(formatPayload(artefact))).toEqual(artefact)
  })

  test.each([
    ['nothing', ''],
    ['no JSON', '{'],
    ['another shape', '[]'],
    ['a path', JSON.stringify({ file: `../${file}`, fingerprint: 'f' })],
    ['an absolute path', JSON.stringify({ file: '/etc/passwd', fingerprint: 'f' })],
    ['a file that is no artefact', JSON.stringify({ file: 'notes.txt', fingerprint: 'f' })],
    ['a name with something behind it', JSON.stringify({ file: `${file}\n`, fingerprint: 'f' })],
    ['a negative size', JSON.stringify({ file, fingerprint: 'f', bytes: -1, sha256: 'cd' })],
  ])('%s is undefined', (_name, payload) => {
    expect(parsePayload(payload)).toBeUndefined()
  })
})
