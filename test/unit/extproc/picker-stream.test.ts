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
  ticket: 't',
}
const wholeBody: HeadersDecision = { kind: 'need-body', decide: async () => forward }
const spliced: Decision = { ...forward, splice: '"id_slot":1', expectModel: undefined }

/** A stream that waits for the body of its request. `send` returns what the gateway sends in return. */
const waitForBody = async (
  bodyMemory = { maxBytes: 2000, heldBytes: 0 },
  decision: HeadersDecision = wholeBody,
  maxBodyBytes = 1000,
) => {
  const stream = openStream(async () => decision, { bodyMemory, maxBodyBytes })
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

test('the end of an object that is kept counts, with the white space behind it, and has to have room', async () => {
  // While it is copied, a piece counts twice.
  const bodyMemory = { maxBytes: 45_000, heldBytes: 0 }
  const [first, second] = [
    await waitForBody(bodyMemory, spliced, 100_000),
    await waitForBody(bodyMemory, spliced, 100_000),
  ]
  const blanks = `{}${' '.repeat(20_000)}`
  await first.send(blanks)
  expect(bodyMemory.heldBytes).toBeGreaterThan(20_000)

  expect(await second.send(blanks)).toMatchObject([{ kind: 'continue' }, refused('rate_limit_exceeded')])
  expect((await first.send('', true)).at(-1)).toMatchObject({ kind: 'body', endOfStream: true })
  expect(bodyMemory.heldBytes).toBe(0)
})

test('a body is held in few blocks, in however many pieces it came', async () => {
  const bodyMemory = { maxBytes: 100_000, heldBytes: 0 }
  const { receiver } = await waitForBody(bodyMemory, wholeBody, 100_000)
  for (let pieces = 0; pieces < 20_000; pieces += 1)
    receiver.message({ kind: 'request_body', body: Buffer.from('x'), endOfStream: false })

  expect(bodyMemory.heldBytes).toBeGreaterThan(20_000)
  expect(bodyMemory.heldBytes).toBeLessThan(40_000)
})

test('a long body is forwarded in slices, none before the peer has read the last one', async () => {
  const bodyMemory = { maxBytes: 10_000_000, heldBytes: 0 }
  const stream = await waitForBody(bodyMemory, wholeBody, 2_000_000)
  const text = `{"model":"m","prompt":"${'x'.repeat(1_000_000)}"}`
  stream.receiver.message({ kind: 'request_body', body: Buffer.from(text), endOfStream: true })
  const sentInTurns: number[] = []
  const sentBytes = () => stream.sent.reduce((sum, reply) => sum + (reply.kind === 'body' ? reply.body.length : 0), 0)
  while (stream.sent.every((reply) => reply.kind !== 'body' || !reply.endOfStream)) {
    const before = sentBytes()
    await nextTurn()
    sentInTurns.push(sentBytes() - before)
  }

  expect(Math.max(...sentInTurns)).toBeLessThanOrEqual(262_144)
  expect(sentBytes()).toBe(text.length)
  expect(bodyMemory.heldBytes).toBe(0)
})

test.each([
  ['{"model":"n"}', 'model_mismatch'],
  ['["model":"m"]', 'invalid_json'],
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
