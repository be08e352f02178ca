import { describe, expect, test } from '@jest/globals'
import { type ErrorCode, errorCodes } from '../../../src/openai/error-codes.ts'
import { GatewayError, toErrorResponse } from '../../../src/openai/gateway-error.ts'

const codes = Object.keys(errorCodes) as ErrorCode[]

describe('GatewayError', () => {
  const retry = { 'x-should-retry': 'true', 'retry-after': '1' }
  test.each([
    { status: 400, type: 'invalid_request_error', retry: { 'x-should-retry': 'false' } },
    { status: 401, type: 'authentication_error', retry: { 'x-should-retry': 'false' } },
    { status: 404, type: 'invalid_request_error', retry: { 'x-should-retry': 'false' } },
    { status: 429, type: 'rate_limit_error', retry },
    { status: 500, type: 'api_error', retry },
    { status: 503, type: 'api_error', retry },
  ])('errors with status $status have type $type and headers $retry', ({ status, type, retry }) => {
    const responses = codes
      .filter((code) => errorCodes[code].status === status)
      .map((code) => toErrorResponse(new GatewayError(code)))

    expect(responses).not.toEqual([])
    for (const response of responses) expect(response).toMatchObject({ body: { error: { type } }, headers: retry })
  })

  test.each<[ErrorCode, string]>([
    ['invalid_json', 'invalid_request_error'],
    ['invalid_api_key', 'authentication_error'],
    ['session_not_found', 'not_found_error'],
    ['session_expired', 'invalid_request_error'],
    ['request_too_large', 'request_too_large'],
    ['rate_limit_exceeded', 'rate_limit_error'],
    ['no_ready_endpoints', 'api_error'],
  ])('%s has Anthropic’s form and type %s below /v1/messages', (code, type) => {
    const error = new GatewayError(code, { param: 'p' })
    const { status, headers } = toErrorResponse(error)

    for (const path of ['/v1/messages', '/v1/messages?beta=true', '/v1/messages/count_tokens'])
      expect(toErrorResponse(error, path)).toEqual({
        status,
        headers,
        body: { type: 'error', error: { type, message: error.message, param: 'p', code } },
      })
    for (const path of ['/v1/messages2', '/v1/completions', '/v1/context?/v1/messages'])
      expect(toErrorResponse(error, path)).toEqual(toErrorResponse(error))
  })

  test('responds with its own message, parameter and headers', () => {
    const error = new GatewayError('method_not_allowed', { message: 'No.', param: 'p', headers: { allow: 'GET' } })

    expect(toErrorResponse(error)).toEqual({
      status: 405,
      headers: { 'x-should-retry': 'false', allow: 'GET' },
      body: { error: { message: 'No.', type: 'invalid_request_error', param: 'p', code: 'method_not_allowed' } },
    })
  })

  test('a header of the error wins over the default one', () => {
    const error = new GatewayError('no_ready_endpoints', { headers: { 'retry-after': '30' } })

    expect(toErrorResponse(error).headers['retry-after']).toBe('30')
  })

  test.each([
    { name: 'an Error', thrown: new Error('connect ECONNREFUSED 10.0.0.1:6379') },
    { name: 'a text', thrown: 'password=hunter2' },
    { name: 'undefined', thrown: undefined },
  ])('from $name is an internal error without its text', ({ thrown }) => {
    const error = GatewayError.from(thrown)

    expect(error.cause).toBe(thrown)
    expect(toErrorResponse(error)).toEqual({
      status: 500,
      headers: { 'x-should-retry': 'true', 'retry-after': '1' },
      body: {
        error: { message: errorCodes.internal_error.message, type: 'api_error', param: null, code: 'internal_error' },
      },
    })
  })

  test('from a GatewayError is that error', () => {
    const error = new GatewayError('invalid_page')

    expect(GatewayError.from(error)).toBe(error)
  })

  test('responds without its cause', () => {
    const error = new GatewayError('session_store_unavailable', { cause: new Error('READONLY secret-host') })

    expect(JSON.stringify(toErrorResponse(error))).not.toContain('secret-host')
  })
})
