import { describe, expect, test } from '@jest/globals'
import { parseJsonObject } from '../../../src/openai/parse-json-object.ts'
import { errorOf } from '../../support/error-of.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const parse = (body: string | Buffer) => parseJsonObject(Buffer.from(body), limits)

describe('parseJsonObject', () => {
  test('reads an object', () => {
    expect(parse(' {"model":"m","n":[1,{"a":null}],"é":"\\u00e9"}\r\n')).toEqual(
      new Map<string, unknown>([
        ['model', 'm'],
        ['n', [1, { a: null }]],
        ['é', 'é'],
      ]),
    )
  })

  test.each([
    { name: 'empty', body: '' },
    { name: 'white space', body: ' \n' },
    { name: 'trailing comma', body: '{"model":"m","prompt":"Say this is a test",}' },
    { name: 'byte order mark', body: '\ufeff{"model":"m"}' },
    { name: 'NaN', body: '{"n":NaN}' },
    { name: 'Infinity', body: '{"n":-Infinity}' },
    { name: 'comment', body: '{"n":1} // one' },
    { name: 'single quotes', body: "{'n':1}" },
    { name: 'unquoted key', body: '{n:1}' },
    { name: 'leading zero', body: '{"n":01}' },
    { name: 'raw line break in a string', body: '{"n":"a\nb"}' },
    { name: 'NUL after the object', body: '{}\0' },
    { name: 'two objects', body: '{}{}' },
    { name: 'cut off', body: '{"model":"m","prompt":"Say' },
    { name: 'form data', body: 'model=m&prompt=hi' },
    { name: 'array', body: '[{"model":"m"}]' },
    { name: 'number', body: '1' },
    { name: 'string', body: '"model"' },
    { name: 'null', body: 'null' },
    { name: 'true', body: 'true' },
  ])('rejects what is not a JSON object: $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'invalid_json', status: 400 })
  })

  test.each([
    { name: 'a lone continuation byte', bytes: [0x80] },
    { name: 'an overlong slash', bytes: [0xc0, 0xaf] },
    { name: 'a surrogate', bytes: [0xed, 0xa0, 0x80] },
    { name: 'a sequence that is cut off', bytes: [0xe2, 0x82] },
    { name: 'beyond U+10FFFF', bytes: [0xf4, 0x90, 0x80, 0x80] },
    { name: 'latin1', bytes: [0xe9] },
  ])('invalid UTF-8 is refused: $name', ({ bytes }) => {
    const body = Buffer.concat([Buffer.from('{"prompt":"'), Buffer.from(bytes), Buffer.from('"}')])

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

  test('takes the last value of any other key given twice', () => {
    expect(parse('{"model":"m","user":"a","user":"b"}').get('user')).toBe('b')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('reads %s as an ordinary key', (key) => {
    const body = parse(`{"${key}":{"polluted":true}}`)

    expect([...body.keys()]).toEqual([key])
    expect(body.get(key)).toEqual({ polluted: true })
    expect({}).not.toHaveProperty('polluted')
  })

  test('contains no part of the body in message or cause', () => {
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
  ])('rejects a text made to be slow before parsing: $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'json_too_complex', status: 400 })
  })

  test.each([
    { name: 'backslashes without end', body: `{"a":"${'\\'.repeat(twoMegabytes)}` },
    { name: 'escaped quotes without end', body: `{"a":"${'\\"'.repeat(twoMegabytes / 2)}` },
  ])('rejects a text in one pass: $name', ({ body }) => {
    expect(errorOf(() => parse(body))).toMatchObject({ code: 'invalid_json' })
  })
})
