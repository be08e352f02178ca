import { describe, expect, test } from '@jest/globals'
import { routingInputOf } from '../../../src/context/turn.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const kv = { artefactId: 'a', payload: '', tokens: 3000, bytes: 9000, turn: 1 }
const predictor = { residentTokens: () => new Map([['a:1', 500]]) }

const inputOf = (contentLength: string | undefined, stored: typeof kv | undefined) =>
  routingInputOf(
    predictor,
    gatewayRequest({
      path: '/v1/completions',
      headers: contentLength === undefined ? {} : { 'content-length': contentLength },
    }),
    { key: 'key' as SessionKey, model: 'm', pod: 'a:1', kv: stored },
  )

describe('routingInputOf', () => {
  test('passes what is known of the session', () => {
    expect(inputOf('100', kv)).toEqual({
      affinityKey: 'key',
      lastPod: 'a:1',
      model: 'm',
      promptTokens: 3000,
      stored: kv,
      residentTokens: new Map([['a:1', 500]]),
    })
  })

  test.each([
    {
      name: 'a body without a length by what a pod holds',
      contentLength: undefined,
      stored: undefined,
      promptTokens: 500,
    },
    { name: 'a new session', contentLength: '4001', stored: undefined, promptTokens: 1001 },
    {
      name: 'a session whose body is longer than what is stored',
      contentLength: '20000',
      stored: kv,
      promptTokens: 5000,
    },
    { name: 'a body that must hold more than text', contentLength: '80000000', stored: kv, promptTokens: 35_768 },
    { name: 'an invalid length', contentLength: 'x', stored: undefined, promptTokens: 500 },
  ])('estimates the prompt of $name', ({ contentLength, stored, promptTokens }) => {
    expect(inputOf(contentLength, stored).promptTokens).toBe(promptTokens)
  })
})
