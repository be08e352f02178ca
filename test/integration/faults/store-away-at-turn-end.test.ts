import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply } from '../support/scripted-pod.ts'
import { wholeResponse } from '../support/scripted-responses.ts'
import { create, createdId, look, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { pod, stack } = useScriptedStack({ store: 'redis', redis: { persistence: 'append-only' } })

const body = { model: 'scripted', prompt: 'hello' }
const faults = [
  {
    fault: 'frozen',
    begin: async () => stack.redis?.child.pause(),
    end: async () => stack.redis?.child.resume(),
  },
  { fault: 'stopped', begin: async () => stack.redis?.child.kill(), end: () => stack.restartRedis() },
] as const

/** Starts a turn, and lets its pod answer while Redis is away. `turn` sends it. */
const answeredWhileAway = async <T>(
  fault: (typeof faults)[number],
  turn: () => Promise<T>,
  response: (reply: PodReply) => void,
) => {
  let received = (_reply: PodReply): void => undefined
  const atPod = new Promise<PodReply>((resolve) => {
    received = resolve
  })
  pod.next((_request, reply) => received(reply))
  const result = turn()
  const reply = await atPod
  expect(await metric(stack, 'store_circuit_open')).toBe(0)

  await fault.begin()
  try {
    response(reply)
    return await result
  } finally {
    // The end of the turn meets a Redis that is away before Redis comes back.
    await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
    await fault.end()
  }
}

const answerWell = (reply: PodReply): void => reply.json(200, wholeResponse('/v1/completions'))

test.each(faults)('a turn that ends while Redis is $fault counts when it is back', async (fault) => {
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)

  const response = await answeredWhileAway(
    fault,
    () => use(stack, id, { body, headers: { 'x-session-ttl': '77' } }),
    answerWell,
  )

  expect(response.status).toBe(200)
  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2, ttl: 77 }))
})

test.each(faults)('a create that ends while Redis is $fault leaves its session', async (fault) => {
  const response = await answeredWhileAway(fault, () => create(stack, { body }), answerWell)

  const id = response.headers.get('x-session-id') ?? ''
  expect(response.status).toBe(200)
  await untilTurns(stack, id, 1)
})

test.each(faults)('a create that fails while Redis is $fault leaves none', async (fault) => {
  const sessionsBefore = await metric(stack, 'sessions_active')

  const response = await answeredWhileAway(
    fault,
    () => create(stack, { body }),
    (reply) => reply.json(500, { error: { message: 'no' } }),
  )

  expect(response.status).toBe(500)
  await eventually(async () => expect(await metric(stack, 'sessions_active')).toBe(sessionsBefore))
  const id = pod.requests().at(-1)?.headers['x-session-id']
  expect((await look(stack, String(id))).status).toBe(404)
})
