import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, look, prompt, remove, untilTurns, use, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

// A gateway behind Envoy whose sessions lie in a Redis Cluster.
const cluster = useTestRedisCluster()
const stack = useStack(async () => ({
  pods: embeddedPods({ count: 1, slots: 4 }),
  env: { REDIS_CLUSTER: cluster().url, CTX_SESSIONS_COMMAND_TIMEOUT_MS: '1000' },
}))
const bodyOf = (number: number) => ({ model, prompt: `${number} ${prompt(60)}`, max_tokens: 2 })
const isHit = (line: string | null): boolean => line?.startsWith('hit') === true

test('sessions outlive the primary of their partition, and every turn is answered meanwhile', async () => {
  const ids: string[] = []
  for (let number = 0; number < 4; number += 1) ids.push(await createdId(stack, { body: bodyOf(number) }))
  for (const id of ids) await untilTurns(stack, id, 1)
  const listed = await call(`${stack.url}/v1/context?limit=100`)
  expect(JSON.parse(listed.text).data.map(({ id }: { readonly id: string }) => id)).toEqual(ids.toReversed())
  const stranger = { headers: { authorization: 'Bearer another-tenant' } }
  expect((await call(`${stack.url}/v1/context/${ids[0]}`, stranger)).status).toBe(404)

  const [key = ''] = await cluster().keys('ctx:{*}:s')
  const victim = await cluster().primaryOf(key)
  await cluster().kill(victim.index)
  for (const [number, id] of ids.entries()) expect((await use(stack, id, { body: bodyOf(number) })).status).toBe(200)
  await cluster().untilReplaced(victim.index)

  for (const [number, id] of ids.entries()) {
    await eventually(async () => isHit(cacheLine(await use(stack, id, { body: bodyOf(number) }))))
    await eventually(async () => (await view(stack, id)).turns >= 2)
  }
  for (const id of ids) expect((await remove(stack, id)).status).toBe(200)
  for (const id of ids) expect((await look(stack, id)).status).toBe(404)
  await eventually(async () => (await stack.kvFiles()).length === 0)
})
