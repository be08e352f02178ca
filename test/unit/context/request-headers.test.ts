import { describe, expect, test } from '@jest/globals'
import { checkTtl, namedModel, parseTtlHeader as parse, type TtlBounds } from '../../../src/context/request-headers.ts'
import { errorOf } from '../../support/error-of.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const parseTtlHeader = (values: readonly string[], limits: TtlBounds) =>
  parse(gatewayRequest({ path: '/v1/context', headers: { 'x-session-ttl': values } }), limits)

const bounds = { minTtlSeconds: 60, maxTtlSeconds: 86_400 }

describe('parseTtlHeader', () => {
  test.each([
    { name: 'no header', values: [], seconds: undefined },
    { name: 'the least', values: ['60'], seconds: 60 },
    { name: 'a TTL between', values: ['3600'], seconds: 3600 },
    { name: 'the most', values: ['86400'], seconds: 86_400 },
  ])('reads $name', ({ values, seconds }) => {
    expect(parseTtlHeader(values, bounds)).toBe(seconds)
  })

  test('reads the longest number', () => {
    expect(parseTtlHeader(['999999999'], { minTtlSeconds: 1, maxTtlSeconds: 999_999_999 })).toBe(999_999_999)
  })

  test.each([
    { name: 'a word', values: ['abc'] },
    { name: 'negative', values: ['-1'] },
    { name: 'zero', values: ['0'] },
    { name: 'a fraction', values: ['1.5'] },
    { name: 'an exponent', values: ['1e3'] },
    { name: 'hexadecimal', values: ['0x10'] },
    { name: 'white space around', values: [' 5 '] },
    { name: 'ten digits', values: ['1000000000'] },
    { name: 'empty', values: [''] },
    { name: 'a leading zero', values: ['03600'] },
    { name: 'a unit', values: ['3600s'] },
    { name: 'other digits', values: ['\u0663\u0660\u0660'] },
    { name: 'a line break behind', values: ['3600\n'] },
    { name: 'two headers', values: ['3600', '7200'] },
    { name: 'the same header twice', values: ['3600', '3600'] },
    { name: 'two values in one header', values: ['3600, 3600'] },
  ])('rejects what is not a whole number of seconds: $name', ({ values }) => {
    expect(errorOf(() => parseTtlHeader(values, bounds))).toMatchObject({
      code: 'invalid_ttl',
      status: 400,
      param: 'x-session-ttl',
    })
  })

  test.each([
    { name: 'below the least', value: '59' },
    { name: 'above the most', value: '86401' },
  ])('rejects a TTL out of range with the range: $name', ({ value }) => {
    expect(errorOf(() => parseTtlHeader([value], bounds))).toMatchObject({
      code: 'ttl_out_of_range',
      status: 400,
      param: 'x-session-ttl',
      message: 'The TTL must be from 60 to 86400 seconds.',
    })
  })
})

test.each([
  ['empty', '', undefined],
  ['of 1024 characters', 'm'.repeat(1024), 'm'.repeat(1024)],
  ['of 1025 characters', 'm'.repeat(1025), undefined],
])('a model in the headers that is %s', (_name, value, model) => {
  const headers = { 'x-gateway-model-name': value }
  expect(namedModel(gatewayRequest({ path: '/v1/completions', headers }))).toBe(model)
})

describe('checkTtl', () => {
  test.each([
    { name: 'a text', value: '3600' },
    { name: 'null', value: null },
    { name: 'a list', value: [3600] },
    { name: 'an object', value: { seconds: 3600 } },
    { name: 'a fraction', value: 3600.5 },
    { name: 'zero', value: 0 },
    { name: 'negative', value: -3600 },
    { name: '1e400 in JSON', value: JSON.parse('1e400') },
    { name: 'beyond exact numbers', value: 2 ** 63 },
  ])('rejects what is not a whole number of seconds: $name', ({ value }) => {
    expect(errorOf(() => checkTtl(value, bounds, 'ttl'))).toMatchObject({ code: 'invalid_ttl', param: 'ttl' })
  })
})
