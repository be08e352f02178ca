import { describe, expect, test } from '@jest/globals'
import { routingInputOf } from '../../../src/context/route-turn.ts'
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
    ['a body without a length by what a pod holds', undefined, undefined, 500],
    ['a new session', '4001', undefined, 1001],
    ['a session whose body is longer than what is stored', '20000', kv, 5000],
    ['a body that must hold more than text', '80000000', kv, 35_768],
    ['an invalid length', 'x', undefined, 500],
  ])('estimates the prompt of %s', (_name, contentLength, stored, promptTokens) => {
    expect(inputOf(contentLength, stored).promptTokens).toBe(promptTokens)
  })
})
