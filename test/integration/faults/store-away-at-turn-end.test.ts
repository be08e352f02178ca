import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply } from '../support/scripted-pod.ts'
import { wholeResponse } from '../support/scripted-responses.ts'
import { createdId, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { pod, stack } = useScriptedStack({ store: 'redis', redis: { persistence: 'append-only' } })

const body = { model: 'scripted', prompt: 'hello' }

test.each([
  { fault: 'frozen', begin: async () => stack.redis?.child.pause(), end: async () => stack.redis?.child.resume() },
  { fault: 'stopped', begin: async () => stack.redis?.child.kill(), end: () => stack.restartRedis() },
])('a turn that ends while Redis is $fault counts when it is back', async ({ begin, end }) => {
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  const atPod = new Promise<PodReply>((resolve) => pod.next((_request, reply) => resolve(reply)))
  const turn = use(stack, id, { body, headers: { 'x-session-ttl': '77' } })
  const reply = await atPod
  expect(await metric(stack, 'store_circuit_open')).toBe(0)

  await begin()
  try {
    reply.json(200, wholeResponse('/v1/completions'))
    expect((await turn).status).toBe(200)
  } finally {
    // The end of the turn meets a Redis that is away before Redis comes back.
    await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
    await end()
  }

  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2, ttl: 77 }))
})
