import { describe, expect, test } from '@jest/globals'
import { CursorPage } from 'openai/pagination'
import { eventually } from '../../support/eventually.ts'
import { type ContextView, readView } from '../support/sessions.ts'
import { untilStored, view } from './session.ts'
import {
  cachedInPods,
  create,
  expectGoneEverywhere,
  expectNotFound,
  spread,
  use,
  useTenantFixture,
} from './tenant-fixture.ts'

const fixture = useTenantFixture()

describe('GET /v1/context/{id}', () => {
  test('returns model, TTL, turns, tokens and KV of the session', async () => {
    const client = fixture.newTenant()
    const before = Math.floor(Date.now() / 1000)
    const { id, response } = await create(client, 'getting', { 'x-session-ttl': '120' })
    const after = Math.ceil(Date.now() / 1000)

    const seen = await untilStored(client, id, 1)

    expect(seen).toMatchObject({ id, model: 'tiny-random', ttl: 120, turns: 1 })
    expect(seen.created_at).toBeGreaterThanOrEqual(before)
    expect(seen.created_at).toBeLessThanOrEqual(after)
    expect(seen.expires_at - seen.created_at).toBe(120)
    expect(fixture.stack.pods.map(({ address }) => address)).toContain(seen.kv.pod)
    expect(seen.kv.stored?.bytes).toBeGreaterThan(1000)
    expect(seen.tokens).toEqual(response.usage)
  })
})

describe('GET /v1/context', () => {
  test('SDK pagination lists sessions, newest first', async () => {
    const client = fixture.newTenant()
    const created: string[] = []
    for (const topic of ['one', 'two', 'three', 'four', 'five']) created.unshift((await create(client, topic)).id)

    const ids: string[] = []
    let pages = 0
    for await (const page of (
      await client.getAPIList('/context', CursorPage<ContextView>, { query: { limit: 2 } })
    ).iterPages()) {
      pages += 1
      ids.push(...page.data.map((item) => readView(item).id))
    }

    expect(ids).toEqual(created)
    expect(pages).toBe(3)
  })
})

describe('PATCH /v1/context/{id}', () => {
  test('new TTL counts from now', async () => {
    const client = fixture.newTenant()
    const { id } = await create(client, 'patching', { 'x-session-ttl': '60' })
    const nowSeconds = Math.floor(Date.now() / 1000)

    const patched = readView(await client.patch(`/context/${id}`, { body: { ttl: 7200 } }))

    expect(patched.ttl).toBe(7200)
    expect(patched.expires_at).toBeGreaterThanOrEqual(nowSeconds + 7200)
    expect((await view(client, id)).expires_at).toBe(patched.expires_at)
  })
})

describe('DELETE /v1/context/{id}', () => {
  test('session, its file and its KV in the pods are removed, and its prompt is computed again', async () => {
    const client = fixture.newTenant()
    const session = await spread(fixture.stack, client, 'Deleting')
    await eventually(async () => expect(await fixture.stack.kvFiles()).toHaveLength(1))

    const deleted = await client.delete(`/context/${session.id}`)

    expect(deleted).toEqual({ id: session.id, object: 'context.deleted', deleted: true })
    await expectNotFound(client.get(`/context/${session.id}`))
    await expectNotFound(client.delete(`/context/${session.id}`))
    await expectNotFound(client.patch(`/context/${session.id}`, { body: { ttl: 60 } }))
    await expectGoneEverywhere(fixture.stack)
    expect(await cachedInPods(fixture.stack, session)).toEqual([0, 0])
  })

  test('turn with the id of a deleted session is answered and restores nothing', async () => {
    const client = fixture.newTenant()
    const session = await create(client, 'never again')
    await untilStored(client, session.id, 1)
    await client.delete(`/context/${session.id}`)
    await expectGoneEverywhere(fixture.stack)

    const { response } = await use(client, session)

    expect(response.text).not.toBe('')
    expect(response.headers.get('x-context-cache')).toBe('miss; reason=session_deleted')
    expect(response.headers.get('x-session-id')).toBeNull()
    await expectNotFound(client.get(`/context/${session.id}`))
    await expect(client.get('/context')).resolves.toMatchObject({ data: [] })
    expect(await fixture.stack.kvFiles()).toEqual([])
  })
})

describe('two tenants', () => {
  test('turn with another tenant’s session id uses none of its KV', async () => {
    const [alice, bob] = [fixture.newTenant(), fixture.newTenant()]
    const session = await create(alice, 'Private')
    await untilStored(alice, session.id, 1)

    const { response } = await use(bob, session)

    expect(response.headers.get('x-context-cache')).toBe('miss; reason=session_not_found')
    expect(response.headers.get('x-session-id')).toBeNull()
    expect((await view(alice, session.id)).turns).toBe(1)
  })
})

describe('time to live', () => {
  test('expired session is removed with its file and its KV in the pods', async () => {
    const client = fixture.newTenant()
    const session = await spread(fixture.stack, client, 'Expiring')

    await client.patch(`/context/${session.id}`, { body: { ttl: 1 } })

    await eventually(() => expectNotFound(client.get(`/context/${session.id}`)))
    await expectGoneEverywhere(fixture.stack)
    expect(await cachedInPods(fixture.stack, session)).toEqual([0, 0])
  })

  test('turn of an expired session with x-session-ttl starts it again with that TTL', async () => {
    const client = fixture.newTenant()
    const session = await create(client, 'reviving', { 'x-session-ttl': '1' })
    await eventually(() => expectNotFound(client.get(`/context/${session.id}`)))

    const revived = await use(client, session, { 'x-session-ttl': '600' })
    const seen = await untilStored(client, session.id, 1)
    const next = await use(client, revived)

    expect(revived.response.headers.get('x-context-cache')).toBe('miss; reason=session_expired')
    expect(seen).toMatchObject({ ttl: 600, tokens: revived.response.usage })
    expect(next.response.headers.get('x-context-cache')).toMatch(/^hit; tier=gpu; /)
    expect(next.response.headers.get('x-session-id')).toBe(session.id)
  })
})
