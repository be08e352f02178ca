import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { embeddedPods, type Stack, startStack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack({ pods: embeddedPods({ count: 2, slots: 2 }), env: { CTX_ROUTING_POLICY: 'round-robin' } })
}, 120_000)

afterAll(() => stack?.stop())

/** Creates a session and tells which pod served its first turn. */
const createOn = async (headers: Record<string, string>): Promise<{ readonly id: string; readonly pod: string }> => {
  const answer = await call(`${stack.url}/v1/context`, {
    headers,
    body: { model, prompt: 'Where does this run?', max_tokens: 1 },
  })
  expect(answer.status).toBe(200)
  const id = answer.headers.get('x-session-id') ?? ''
  return { id, pod: await podOf(id, 1) }
}

const podOf = (id: string, turns: number): Promise<string> =>
  eventually(async () => {
    const { body } = await call(`${stack.url}/v1/context/${id}`)
    expect(body).toMatchObject({ turns, kv: { pod: expect.any(String) } })
    return (body as { readonly kv: { readonly pod: string } }).kv.pod
  })

const decisions = async (policy: string): Promise<number> => {
  const metrics = await call(`${stack.gateway().adminUrl}/metrics`)
  const counts = [...metrics.text.matchAll(/^context_cache_routing_decisions_total\{(.*)\} (\d+)$/gm)]
  return counts
    .filter(([, labels]) => labels?.includes(`policy="${policy}"`))
    .reduce((sum, [, , count]) => sum + Number(count), 0)
}

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
      const answer = await call(`${stack.url}/v1/completions`, {
        headers: { 'x-session-id': id, 'routing-strategy': 'session-affinity' },
        body: { model, prompt: 'Where does this run?', max_tokens: 1 },
      })
      expect(answer.status).toBe(200)
      expect(await podOf(id, turn)).toBe(pod)
    }
  })

  test('unknown policy gets an error that lists the policies', async () => {
    const answer = await call(`${stack.url}/v1/context`, {
      headers: { 'routing-strategy': 'magic' },
      body: { model, prompt: 'x' },
    })
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({
      error: { code: 'invalid_routing_strategy', message: expect.stringContaining('session-affinity, least-request') },
    })
  })
})
