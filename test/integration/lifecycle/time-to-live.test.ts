import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { untilStored } from './session.ts'
import {
  cachedInPods,
  create,
  expectGoneEverywhere,
  expectNotFound,
  spread,
  use,
  useTenantBench,
} from './tenant-bench.ts'

const bench = useTenantBench()

describe('time to live', () => {
  test('expired session is removed with its file and its KV in the pods', async () => {
    const client = bench.newTenant()
    const session = await spread(bench.stack, client, 'Expiring')

    await client.patch(`/context/${session.id}`, { body: { ttl: 1 } })

    await eventually(() => expectNotFound(client.get(`/context/${session.id}`)))
    await expectGoneEverywhere(bench.stack)
    expect(await cachedInPods(bench.stack, session)).toEqual([0, 0])
  })

  test('turn of an expired session with x-session-ttl starts it again with that TTL', async () => {
    const client = bench.newTenant()
    const session = await create(client, 'reviving', { 'x-session-ttl': '1' })
    await eventually(() => expectNotFound(client.get(`/context/${session.id}`)))

    const revived = await use(client, session, { 'x-session-ttl': '600' })
    const seen = await untilStored(client, session.id, 1)
    const next = await use(client, revived)

    expect(revived.answer.headers.get('x-context-cache')).toBe('miss; reason=session_expired')
    expect(seen).toMatchObject({ ttl: 600, tokens: revived.answer.usage })
    expect(next.answer.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu; /)
    expect(next.answer.headers.get('x-session-id')).toBe(session.id)
  })
})
