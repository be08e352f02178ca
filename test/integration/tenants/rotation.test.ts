import { expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, look, prompt, remove, untilStored, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const former = 'the secret before the rotation, which is long enough'
const next = 'the secret after the rotation, which is long enough too'
const stack = useStack({
  store: 'redis',
  gateways: 2,
  pods: embeddedPods({ count: 1 }),
  env: { CTX_TENANT_SECRET: former },
})
const other = { authorization: 'Bearer other-key' }

const restart = async (index: number, env: Record<string, string>): Promise<void> => {
  await stack.gateway(index).child.stop()
  await stack.restartGateway(index, env)
}
const askNamed = () =>
  call(`${stack.url}/v1/completions`, {
    headers: { 'thread-id': 'conversation' },
    body: { model, prompt: prompt(20), max_tokens: 2 },
  })
const idOf = ({ headers }: { readonly headers: Headers }): string => headers.get('x-session-id') ?? ''
const listed = async () => (await call(`${stack.url}/v1/context`)).text

test('sessions survive a rotation of the secret, gateway by gateway, and no tenant gets those of another', async () => {
  const id = await createdId(stack)
  let turns = (await untilStored(stack, id, 1)).turns
  const named = idOf(await askNamed())
  let namedTurns = (await untilStored(stack, named, 1)).turns
  /** Turns through both gateways, by id and by name. */
  const takeTurns = async (): Promise<void> => {
    for (let round = 0; round < 3; round += 1) {
      expect(cacheLine(await use(stack, id))).toMatch(/^hit/)
      turns += 1
      await untilTurns(stack, id, turns)
      const again = await askNamed()
      expect([idOf(again), cacheLine(again)]).toEqual([named, expect.stringMatching(/^hit/)])
      namedTurns += 1
      await untilTurns(stack, named, namedTurns)
    }
  }
  const both = { CTX_TENANT_SECRET: former, CTX_TENANT_PREVIOUS_SECRET: next }
  const turned = { CTX_TENANT_SECRET: next, CTX_TENANT_PREVIOUS_SECRET: former }
  for (const env of [both, turned])
    for (const index of [0, 1]) {
      await restart(index, env)
      await takeTurns()
    }

  const begun = await createdId(stack)
  await untilStored(stack, begun, 1)
  for (const each of [id, named, begun]) {
    expect(await listed()).toContain(each)
    expect((await call(`${stack.url}/v1/context/${each}`, { headers: other })).status).toBe(404)
    expect(cacheLine(await use(stack, each, { headers: other }))).toBe('miss; reason=session_not_found')
  }
  expect((await call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl: 60 } })).status).toBe(200)
  expect((await remove(stack, id)).status).toBe(200)
  expect(stack.output()).not.toContain('a turn ended with a ticket that this gateway does not know')

  for (const index of [0, 1]) await restart(index, { CTX_TENANT_SECRET: next })
  expect(cacheLine(await use(stack, begun))).toMatch(/^hit/)
  expect((await look(stack, named)).status).toBe(404)
})
