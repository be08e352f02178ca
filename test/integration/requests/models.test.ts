import { expect, test } from '@jest/globals'
import { metric, readMetric } from '../support/metrics.ts'
import { cacheLine, create, createdId, errorOf, prompt, untilStored, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** One pod serves alpha, also as `alias`, the other one beta. */
const stack = useStack({
  pods: async (folder) => {
    const pods = await Promise.all([
      embeddedPods({ count: 1, arguments: ['--model-name', 'alpha', '--model-name', 'alias'] })(folder),
      embeddedPods({ count: 1, arguments: ['--model-name', 'beta'] })(folder),
    ])
    return pods.flat()
  },
})

const bodyOf = (model: string) => ({ model, prompt: prompt(20), max_tokens: 2 })

test.each([
  { model: 'alpha', pod: 0 },
  { model: 'alias', pod: 0 },
  { model: 'beta', pod: 1 },
])('turns of model $model go to the pod that serves it, whatever policy is asked for', async ({ model, pod }) => {
  const body = bodyOf(model)
  const id = await createdId(stack, { body })
  for (const policy of ['round-robin', 'round-robin', 'random']) {
    const turn = await use(stack, id, { body, headers: { 'routing-strategy': policy } })
    expect(turn.status).toBe(200)
  }
  const { kv } = await untilStored(stack, id, 4)
  expect(kv.pod).toBe(stack.pods[pod]?.address)
  expect(cacheLine(await use(stack, id, { body }))).toMatch(/^hit;/)
  expect(await metric(stack, 'routing_decisions_total', { policy: 'random' })).toBeGreaterThan(0)
})

test.each([
  { name: 'POST /v1/context', options: {} },
  { name: 'x-session-ttl', options: { path: '/v1/completions', headers: { 'x-session-ttl': '60' } } },
])('a create by $name of a model that no pod serves gets 404, and no pod is chosen', async ({ options }) => {
  const before = await readMetric(stack, 'routing_decisions_total')
  const response = await create(stack, { ...options, body: bodyOf('gamma') })
  expect([response.status, response.headers.get('x-session-id')]).toEqual([404, null])
  expect(errorOf(response)).toMatchObject({ type: 'invalid_request_error', param: 'model', code: 'model_not_found' })
  expect(await readMetric(stack, 'routing_decisions_total')).toEqual(before)
})
