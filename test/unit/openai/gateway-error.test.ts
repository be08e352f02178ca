import { describe, expect, test } from '@jest/globals'
import { type ErrorCode, errorCodes } from '../../../src/openai/error-codes.ts'
import { GatewayError, toErrorAnswer } from '../../../src/openai/gateway-error.ts'

const codes = Object.keys(errorCodes) as ErrorCode[]

describe('GatewayError', () => {
  test.each(codes)('%s answers in the shape of OpenAI errors', (code) => {
    const { status, type, message } = errorCodes[code]

    expect(toErrorAnswer(new GatewayError(code))).toMatchObject({
      status,
      body: { error: { message, type, param: null, code } },
    })
  })

  test.each(codes)('%s is an error of the client exactly when its status says so', (code) => {
    expect(errorCodes[code].status < 500).toBe(errorCodes[code].type !== 'api_error')
    expect(errorCodes[code].status === 401).toBe(errorCodes[code].type === 'authentication_error')
  })

  test.each(codes)('%s has a message in whole sentences', (code) => {
    expect(errorCodes[code].message).toMatch(/^\S.*\.$|^Send .+/)
  })

  test('tells SDKs not to repeat what would fail again', () => {
    expect(toErrorAnswer(new GatewayError('invalid_ttl')).headers).toEqual({ 'x-should-retry': 'false' })
  })

  test('tells SDKs when to repeat what may work soon', () => {
    expect(toErrorAnswer(new GatewayError('no_ready_endpoints')).headers).toEqual({
      'x-should-retry': 'true',
      'retry-after': '1',
    })
  })

  test('takes its own message, parameter and headers', () => {
    const error = new GatewayError('method_not_allowed', { message: 'No.', param: 'p', headers: { allow: 'GET' } })

    expect(toErrorAnswer(error)).toEqual({
      status: 405,
      headers: { 'x-should-retry': 'false', allow: 'GET' },
      body: { error: { message: 'No.', type: 'invalid_request_error', param: 'p', code: 'method_not_allowed' } },
    })
  })

  test('a header of the error wins over the default one', () => {
    const error = new GatewayError('no_ready_endpoints', { headers: { 'retry-after': '30' } })

    expect(toErrorAnswer(error).headers['retry-after']).toBe('30')
  })

  test.each([
    { name: 'an Error', thrown: new Error('connect ECONNREFUSED 10.0.0.1:6379') },
    { name: 'a text', thrown: 'password=hunter2' },
    { name: 'undefined', thrown: undefined },
  ])('$name that was thrown becomes an internal error that says nothing of it', ({ thrown }) => {
    const error = GatewayError.from(thrown)

    expect(error.cause).toBe(thrown)
    expect(toErrorAnswer(error)).toEqual({
      status: 500,
      headers: { 'x-should-retry': 'true', 'retry-after': '1' },
      body: {
        error: { message: errorCodes.internal_error.message, type: 'api_error', param: null, code: 'internal_error' },
      },
    })
  })

  test('keeps an error that is one already', () => {
    const error = new GatewayError('invalid_page')

    expect(GatewayError.from(error)).toBe(error)
  })

  test('keeps its cause out of the answer', () => {
    const error = new GatewayError('session_store_unavailable', { cause: new Error('READONLY secret-host') })

    expect(JSON.stringify(toErrorAnswer(error))).not.toContain('secret-host')
  })
})
