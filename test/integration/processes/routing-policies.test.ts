import { describe, expect, test } from '@jest/globals'
import { metric } from '../support/metrics.ts'
import { create, createdId, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack } = useScriptedStack({ podCount: 2, env: { CTX_ROUTING_POLICY: 'round-robin' } })

const body = { model: 'scripted', prompt: 'Where does this run?' }

/** Creates a session; returns its id and the pod that served its first turn. */
const createOn = async (headers: Record<string, string>) => {
  const id = await createdId(stack, { headers, body })
  const { kv } = await untilTurns(stack, id, 1)
  return { id, pod: kv.pod }
}

const decisions = (policy: string) => metric(stack, 'routing_decisions_total', { policy })

test('configured policy round-robin alternates between the pods', async () => {
  const pods = [await createOn({}), await createOn({}), await createOn({}), await createOn({})].map(({ pod }) => pod)
  expect(new Set(pods).size).toBe(2)
  expect(pods[2]).toBe(pods[0])
  expect(pods[3]).toBe(pods[1])
})

describe('routing-strategy header', () => {
  test.each([
    'random',
    'round-robin',
    'least-request',
    'least-kv-cache',
    'session-affinity',
    'prefix-cache',
    'predicted-ttft',
  ])('%s selects the policy of the request', async (policy) => {
    const before = await decisions(policy)
    await createOn({ 'routing-strategy': policy })
    expect(await decisions(policy)).toBe(before + 1)
  })

  test('session-affinity selects the pod of the turn before', async () => {
    const { id, pod } = await createOn({})
    for (let turn = 2; turn <= 5; turn += 1) {
      expect((await use(stack, id, { headers: { 'routing-strategy': 'session-affinity' }, body })).status).toBe(200)
      expect((await untilTurns(stack, id, turn)).kv.pod).toBe(pod)
    }
  })

  test('unknown policy gets an error that lists the policies', async () => {
    const response = await create(stack, { headers: { 'routing-strategy': 'magic' } })
    expect(response.status).toBe(400)
    expect(response.body).toMatchObject({
      error: { code: 'invalid_routing_strategy', message: expect.stringContaining('session-affinity, least-request') },
    })
  })
})
