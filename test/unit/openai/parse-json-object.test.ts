import { describe, expect, test } from '@jest/globals'
import { parseJsonObject } from '../../../src/openai/parse-json-object.ts'
import { errorOf } from '../../support/error-of.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const parse = (body: string | Buffer) => parseJsonObject(Buffer.from(body), limits)

describe('parseJsonObject', () => {
  test('returns the members of an object', () => {
    expect(parse(' {"model":"m","n":[1,{"a":null}],"é":"\\u00e9"}\r\n')).toEqual(
      new Map<string, unknown>([
        ['model', 'm'],
        ['n', [1, { a: null }]],
        ['é', 'é'],
      ]),
    )
  })

  // The fuzz test compares every other text with the decoder and the parser of the platform.
  test.each([
    { name: 'empty', body: '' },
    { name: 'byte order mark', body: '\ufeff{"model":"m"}' },
  ])('$name is not a JSON object', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'invalid_json', status: 400 })
  })

  test('latin1 is refused as invalid UTF-8', () => {
    const body = Buffer.from('{"prompt":"é"}', 'latin1')
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'invalid_encoding', status: 400 })
  })

  test('names the limits that a body exceeds', () => {
    expect(errorOf(() => parse('['.repeat(65))).message).toContain('64 levels')
    expect(errorOf(() => parse('['.repeat(65))).message).toContain('20000 members')
  })

  test.each([
    { name: 'twice', body: '{"model":"a","prompt":"x","model":"b"}' },
    { name: 'twice with the same value', body: '{"model":"a","model":"a"}' },
    { name: 'once plainly and once escaped', body: '{"model":"a","mode\\u006C":"b"}' },
  ])('refuses a model given $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'duplicate_key', param: 'model' })
  })

  test('lets any other key stand twice, the last one wins', () => {
    expect(parse('{"model":"m","user":"a","user":"b"}').get('user')).toBe('b')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('takes %s for a key like any other', (key) => {
    const body = parse(`{"${key}":{"polluted":true}}`)

    expect([...body.keys()]).toEqual([key])
    expect(body.get(key)).toEqual({ polluted: true })
    expect({}).not.toHaveProperty('polluted')
  })

  test('never repeats the body in its message or its cause', () => {
    const error = errorOf(() => parse('{"prompt":"my secret",}'))

    expect(error.message).not.toContain('secret')
    expect(error.cause).toBeUndefined()
  })

  const twoMegabytes = 2 * 1024 * 1024
  test.each([
    { name: 'open arrays', body: '['.repeat(twoMegabytes) },
    { name: 'open objects', body: '{"a":'.repeat(twoMegabytes / 5) },
    { name: 'nested in a member', body: `{"model":"m","prompt":${'['.repeat(twoMegabytes)}` },
    { name: 'keys without end', body: `{${'"a":0,'.repeat(twoMegabytes / 6)}` },
    { name: 'colons alone', body: ':'.repeat(twoMegabytes) },
    { name: 'empty objects without end', body: `{"a":[{}${',{}'.repeat(twoMegabytes / 3)}]}` },
    { name: 'closing brackets first', body: `${']'.repeat(twoMegabytes)}${'['.repeat(twoMegabytes)}` },
  ])('does not parse a text made to be slow: $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'json_too_complex', status: 400 })
  })

  test.each([
    { name: 'backslashes without end', body: `{"a":"${'\\'.repeat(twoMegabytes)}` },
    { name: 'escaped quotes without end', body: `{"a":"${'\\"'.repeat(twoMegabytes / 2)}` },
  ])('refuses without going over the text again and again: $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'invalid_json' })
  })
})
