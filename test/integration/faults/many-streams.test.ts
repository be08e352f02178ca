import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import { streamedAnswer } from '../support/scripted-answers.ts'
import { type PodReply, type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { createdId, metric, view } from './support.ts'

jest.setTimeout(120_000)

/** More than the requests that Envoy lets run at once in a cluster with default settings. */
const streams = 1100
/** How many are opened at a time, so that what is tried is how many can be open, not how fast a small machine opens them. */
const atATime = 50

let pod: ScriptedPod
let stack: Stack

beforeAll(async () => {
  pod = await startScriptedPod()
  stack = await startStack({ store: 'redis', pods: async () => [pod], env: { CONNECTOR: 'none' } })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  await pod?.stop()
}, 30_000)

const path = '/v1/chat/completions'
const body = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] }

const openStream = (headers: Record<string, string>): Promise<Response> =>
  fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer test-key', 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, stream: true }),
    signal: AbortSignal.timeout(100_000),
  })

test(`${streams} concurrent streams of old and new sessions are all served and counted`, async () => {
  const oldSessions = await Promise.all(Array.from({ length: atATime / 2 }, () => createdId(stack, { body })))
  const turnsEach = 1 + streams / atATime
  const sessionsBefore = await metric(stack, 'sessions_active')
  const [first = '', ...others] = streamedAnswer(path)
  const open: PodReply[] = []
  pod.otherwise((_request, reply) => {
    reply.write(first)
    open.push(reply)
  })

  const responses: Response[] = []
  while (responses.length < streams) {
    const opened = oldSessions.flatMap((id) => [
      openStream({ 'x-session-id': id }),
      openStream({ 'x-session-ttl': '600' }),
    ])
    responses.push(...(await Promise.all(opened)))
  }
  expect(open).toHaveLength(streams)
  expect(await metric(stack, 'turns_in_flight')).toBe(streams)
  // A stream that only runs asks nothing of the gateway.
  expect(await metric(stack, 'ext_proc_streams_active')).toBe(0)
  const texts = Promise.all(responses.map((response) => response.text()))
  for (const reply of open) {
    for (const piece of others) reply.write(piece)
    reply.end()
  }

  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(await texts)).toEqual(new Set([[first, ...others].join('')]))
  const ids = new Set(responses.map(({ headers }) => headers.get('x-session-id')))
  expect(ids.size).toBe(oldSessions.length + streams / 2)
  for (const id of oldSessions) {
    await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: turnsEach }))
  }
  await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
  expect(await metric(stack, 'sessions_active')).toBe(sessionsBefore + streams / 2)
})
