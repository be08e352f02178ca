import { describe, expect, test } from '@jest/globals'
import type { Decision } from '../../../src/context/context-cache-manager.ts'
import { decisionMessage } from '../../../src/extproc/replies.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'

const messageOf = (decision: Decision) => decisionMessage('request_headers', decision)

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
  readonly details: string
}

const answer = ({ status, headers, body, details }: Answer) => ({
  immediate_response: {
    status: { code: status },
    headers: {
      set_headers: Object.entries({ 'content-type': 'application/json', ...headers }).map(([key, value]) => ({
        header: { key, raw_value: Buffer.from(value) },
        append_action: 2,
      })),
    },
    body: Buffer.from(JSON.stringify(body)),
    details,
  },
})

// What goes on, and answers of the cache: codec.test.ts.
describe('answers', () => {
  test('are JSON, with their own headers', () => {
    const headers = { 'x-a': 'b', 'content-length': '9' }
    expect(messageOf({ kind: 'response', status: 200, body: { object: 'list' }, headers })).toEqual(
      answer({ status: 200, headers: { 'x-a': 'b' }, body: { object: 'list' }, details: 'ctx_answer' }),
    )
  })

  test.each([204, 304])('%i has no body', (status) => {
    expect(messageOf({ kind: 'response', status, body: {}, headers: {} })).toMatchObject({
      immediate_response: { status: { code: status }, body: Buffer.alloc(0) },
    })
  })

  test('a body that JSON leaves out throws', () => {
    expect(() => messageOf({ kind: 'response', status: 200, body: undefined, headers: {} })).toThrow()
  })

  test('rejections have the shape of OpenAI errors, and details under the fixed prefix', () => {
    const error = new GatewayError('method_not_allowed', { param: 'x', headers: { allow: 'GET' } })
    const body = {
      error: {
        message: 'This method is not allowed here.',
        type: 'invalid_request_error',
        param: 'x',
        code: 'method_not_allowed',
      },
    }
    expect(messageOf({ kind: 'reject', error })).toEqual(
      answer({
        status: 405,
        headers: { 'x-should-retry': 'false', allow: 'GET' },
        body,
        details: 'ctx_method_not_allowed',
      }),
    )
  })
})
