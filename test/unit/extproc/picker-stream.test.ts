import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import type { Decision, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import { openStream, requestHeaders } from './stream-harness.ts'

const forward: Decision = {
  kind: 'forward',
  destinations: ['10.0.0.1:8000'],
  path: undefined,
  requestHeaders: {},
  splice: undefined,
  expectModel: 'm',
  responseHeaders: {},
  ticket: { turnId: 't', pool: 'default', pod: '10.0.0.1:8000' },
}
const wholeBody: HeadersDecision = { kind: 'need-body', decide: async () => forward }

/** A stream that waits for the body of its request. `send` returns what the gateway sends in return. */
const waitForBody = async (bodyMemory = { maxBytes: 2000, heldBytes: 0 }) => {
  const stream = openStream(async () => wholeBody, { bodyMemory })
  stream.receiver.message(requestHeaders({}, { bodyMode: 'full_duplex_streamed' }))
  await nextTurn()
  const send = async (text: string, endOfStream = false): Promise<readonly unknown[]> => {
    stream.receiver.message({ kind: 'request_body', body: Buffer.from(text), endOfStream })
    for (let turns = 0; turns < 3; turns += 1) await nextTurn()
    return stream.sent
  }
  return { ...stream, send }
}

const refused = (code: string) => ({ kind: 'decision', decision: { kind: 'reject', error: { code } } })

test('a body for which there is no room beside those of other streams is refused, and makes room', async () => {
  const bodyMemory = { maxBytes: 2000, heldBytes: 0 }
  const [first, second] = [await waitForBody(bodyMemory), await waitForBody(bodyMemory)]
  const half = `{"a":"${'x'.repeat(900)}`

  expect(await first.send(half)).toEqual([])
  expect(await second.send(half)).toMatchObject([refused('rate_limit_exceeded')])
  expect(await first.send('"}', true)).toMatchObject([{ kind: 'continue' }, { kind: 'body', endOfStream: true }])
  expect(bodyMemory.heldBytes).toBe(0)
})

test.each([
  ['{"model":"n"}', 'model_mismatch'],
  ['["model":"n"]', 'invalid_json'],
])('the body %s of a turn is refused: %s', async (text, code) => {
  const { send, turnEnds } = await waitForBody()
  await send(text.slice(0, 7))

  expect(await send(text.slice(7), true)).toMatchObject([{ kind: 'continue' }, refused(code)])
  expect(turnEnds).toMatchObject([{ status: 400, clientDisconnected: false }])
})

test('Envoy’s own 504 does not say that the pod failed', async () => {
  const { send, receiver, turnEnds } = await waitForBody()
  await send('{"model":"m"}', true)
  const headers = (name: string) => (name === ':status' ? ['504'] : [])
  receiver.message({ kind: 'response_headers', headers, endOfStream: true })
  expect(turnEnds).toMatchObject([{ status: 504, upstreamFailed: false }])
})
