import { describe, expect, test } from '@jest/globals'
import { checkJsonObject, parseJsonObject } from '../../../src/openai/parse-json-object.ts'
import { allSlices } from '../../support/all-slices.ts'
import { errorOf } from '../../support/error-of.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const check = (body: string | Buffer) => allSlices(checkJsonObject(Buffer.from(body), limits))
const parse = (body: string, maxBytes = 1_000_000) =>
  allSlices(parseJsonObject(Buffer.from(body), { ...limits, maxBytes }))

describe('checkJsonObject', () => {
  // The fuzz test compares every other text with the decoder and the parser of the platform.
  test.each([
    { name: 'empty', body: '' },
    { name: 'byte order mark', body: '\ufeff{"model":"m"}' },
  ])('$name is not a JSON object', ({ body }) => {
    expect(errorOf(() => check(body))).toMatchObject({ code: 'invalid_json', status: 400 })
  })

  test('latin1 is refused as invalid UTF-8', () => {
    const body = Buffer.from('{"prompt":"é"}', 'latin1')
    expect(errorOf(() => check(body))).toMatchObject({ code: 'invalid_encoding', status: 400 })
  })

  test('names the limits that a body exceeds', () => {
    expect(errorOf(() => check('['.repeat(65))).message).toContain('64 levels')
    expect(errorOf(() => check('['.repeat(65))).message).toContain('20000 members')
  })

  test.each([
    { name: 'twice', body: '{"model":"a","prompt":"x","model":"b"}' },
    { name: 'twice with the same value', body: '{"model":"a","model":"a"}' },
    { name: 'once plainly and once escaped', body: '{"model":"a","mode\\u006C":"b"}' },
  ])('refuses a model given $name', ({ body }) => {
    expect(errorOf(() => check(body))).toMatchObject({ code: 'duplicate_key', param: 'model' })
  })

  test('never repeats the body in its message or its cause', () => {
    const error = errorOf(() => check('{"prompt":"my secret",}'))

    expect(error.message).not.toContain('secret')
    expect(error.cause).toBeUndefined()
  })

  const twoMegabytes = 2 * 1024 * 1024
  test.each([
    { name: 'open arrays', body: '['.repeat(twoMegabytes) },
    { name: 'open objects', body: '{"a":'.repeat(twoMegabytes / 5) },
    { name: 'nested in a member', body: `{"model":"m","prompt":${'['.repeat(twoMegabytes)}` },
    { name: 'keys without end', body: `{${'"a":0,'.repeat(twoMegabytes / 6)}` },
    { name: 'empty objects without end', body: `{"a":[{}${',{}'.repeat(twoMegabytes / 3)}]}` },
  ])('refuses what no engine should take: $name', ({ body }) => {
    expect(errorOf(() => check(body))).toMatchObject({ code: 'json_too_complex', status: 400 })
  })
})

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

  test('lets any key but the model stand twice, the last one wins', () => {
    expect(parse('{"model":"m","user":"a","user":"b"}').get('user')).toBe('b')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('takes %s for a key like any other', (key) => {
    const body = parse(`{"${key}":{"polluted":true}}`)

    expect([...body.keys()]).toEqual([key])
    expect(body.get(key)).toEqual({ polluted: true })
    expect({}).not.toHaveProperty('polluted')
  })

  test('builds nothing of what is too long, or has too many values', () => {
    expect(errorOf(() => parse('{"a":"xxxxxx"}', 10))).toMatchObject({ code: 'request_too_large' })
    expect(parse(`{"a":[1${',1'.repeat(9_997)}]}`).size).toBe(1)
    expect(errorOf(() => parse(`{"a":[1${',1'.repeat(9_998)}]}`))).toMatchObject({ code: 'json_too_complex' })
  })
})
