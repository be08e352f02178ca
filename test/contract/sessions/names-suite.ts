import { describe, expect, test } from '@jest/globals'
import { maxBranches } from '../../../src/sessions/limits.ts'
import { type TenantName, tenantNameOf } from '../../../src/sessions/session-directory.ts'
import { branchKeyOf, type SessionKey } from '../../../src/sessions/session-record.ts'
import {
  alice,
  hours,
  mallory,
  owned,
  type StoreCalls,
  seconds,
  session,
  sessionKey,
  storedKv,
} from './store-under-test.ts'

const slide = { expiry: { kind: 'slide' } } as const

/** Sessions that clients' names choose. */
export const describeNamedSessions = (calls: StoreCalls): void => {
  const { advance, abandon, beginNamed, claimAll, complete, counts, drain, get, list, remove, storeKv, sweep } = calls
  const keyOf = async (turn: ReturnType<typeof beginNamed>): Promise<SessionKey | undefined> => {
    const begun = await turn
    return begun.kind === 'active' || begun.kind === 'created' ? begun.record.key : undefined
  }
  /** A completed turn; resolves to the key of its branch. */
  const takeTurn = async (turnId: string, change: Parameters<typeof beginNamed>[1] = {}): Promise<SessionKey> => {
    const key = (await keyOf(beginNamed(turnId, change))) ?? session
    await complete(turnId, { key, ...slide })
    return key
  }

  describe('sessions that names choose', () => {
    test('the first turn creates it, and six first turns at a time are one session', async () => {
      const begun = await Promise.all(Array.from({ length: 6 }, (_, index) => beginNamed(`turn-${index}`)))
      await Promise.all(begun.map((_, index) => complete(`turn-${index}`, slide)))

      const kinds = begun.map(({ kind }) => kind).sort()
      expect(kinds).toEqual(['active', 'active', 'active', 'active', 'active', 'created'])
      expect(await get()).toMatchObject({ turns: 6, model: 'llama-3.1-8b', ttlSeconds: 3600 })
      expect(await list()).toMatchObject({ records: [{ key: session }] })
    })

    test('a tenant has as many as live, by its name', async () => {
      const { store } = calls
      await takeTurn('turn-1')
      await takeTurn('turn-2', { key: sessionKey('other'), ttlSeconds: 10, marks: ['a'] })
      await takeTurn('turn-3', { marks: ['b'] })
      await calls.createActive({ key: sessionKey('by-id'), turnId: 'turn-4' })
      const count = (tenant = alice) => store().countNamed(tenantNameOf(tenant) ?? ('' as TenantName))

      expect([await count(), await count(mallory)]).toEqual([2, 0])
      await remove()
      expect(await count()).toBe(1)
    })

    test('a first turn that fails leaves nothing', async () => {
      await beginNamed()
      await abandon()

      expect(await get()).toBeUndefined()
      expect(await beginNamed()).toMatchObject({ kind: 'created' })
    })

    test.each([
      { name: 'its first turn fails', end: () => abandon() },
      { name: 'it is deleted', end: () => remove() },
      { name: 'its time is over', end: () => advance(hours(2)) },
    ])('no prompt outlives its session: $name', async ({ end }) => {
      await beginNamed()
      const other = await takeTurn('turn-2', { marks: ['b1'] })
      await storeKv('kv-other', 1, { key: other })
      await end()
      await sweep()

      expect(await calls.store().find(other)).toBeUndefined()
      expect(Object.keys(await claimAll())).toContain(`s:${other}`)
      expect((await counts()).sessions).toBe(0)
    })

    test('each prompt keeps a branch of its own, which its next turns find', async () => {
      const first = await takeTurn('turn-1', { marks: ['a1'] })
      const other = await takeTurn('turn-2', { marks: ['b1'] })
      await storeKv('kv-first', 1, { key: first })
      const again = await beginNamed('turn-3', { marks: ['a1', 'a2'] })
      const otherAgain = await beginNamed('turn-4', { marks: ['b1', 'b2', 'b3'] })

      expect([first, other]).toEqual([session, branchKeyOf(session, 1)])
      expect(again).toMatchObject({ kind: 'active', record: { key: first, kv: storedKv('kv-first') } })
      expect(otherAgain).toMatchObject({ kind: 'active', record: { key: other, turns: 1 } })
      expect((await list()).records).toHaveLength(1)
    })

    test('a prompt that continues two branches is the next turn of the longer one', async () => {
      await takeTurn('turn-1', { marks: ['system'] })
      const longer = await takeTurn('turn-2', { marks: ['other'] })
      await takeTurn('turn-3', { marks: ['system', 'other', 'user'] })
      // Its last mark is that of the first branch now.
      await takeTurn('turn-4', { marks: ['other', 'system', 'user2'] })

      expect(await keyOf(beginNamed('turn-5', { marks: ['user2', 'user'] }))).toBe(longer)
    })

    test('one prompt too many takes the place of the one used longest ago, whose KV is dropped', async () => {
      for (let branch = 0; branch < maxBranches; branch++) {
        await takeTurn(`turn-${branch}`, { marks: [`prompt-${branch}`] })
        await storeKv(`kv-${branch}`, 1, { key: branchKeyOf(session, branch) })
        await advance(seconds(10))
      }
      await takeTurn('again', { marks: ['prompt-0', 'more'] })
      await drain()
      const late = await beginNamed('late', { marks: ['prompt-new'] })

      expect(late).toMatchObject({ kind: 'active', record: { key: branchKeyOf(session, 1), kv: undefined } })
      expect(late.kind === 'active' ? late.record.kvStatus : 'none').toBeUndefined()
      expect(await claimAll()).toHaveProperty('a:kv-1')
      expect(await keyOf(beginNamed('turn-9', { marks: ['prompt-0', 'more'] }))).toBe(session)
    })

    test('the session shows its branches, and so does the list', async () => {
      await takeTurn('turn-1', { marks: ['a'] })
      const other = await takeTurn('turn-2', { marks: ['b'] })

      const whole = { key: session, turns: 1, branches: [{ key: other, turns: 1 }] }
      expect(await get()).toMatchObject(whole)
      expect(await list()).toMatchObject({ records: [whole] })
      expect(await calls.setTtl(60)).toMatchObject(whole)
    })

    test('where turns hold every branch, another prompt has no session', async () => {
      for (let branch = 0; branch < maxBranches; branch++) await beginNamed(`turn-${branch}`, { marks: [`p${branch}`] })

      expect(await beginNamed('late', { marks: ['new'] })).toEqual({ kind: 'unknown' })
    })

    test('a turn of any prompt restarts the time to live', async () => {
      await takeTurn('turn-1', { marks: ['a'] })
      await advance(seconds(3000))
      await takeTurn('turn-2', { marks: ['b'] })
      await advance(seconds(3000))

      expect(await get()).toMatchObject({ turns: 1 })
      expect(await keyOf(beginNamed('turn-3', { marks: ['a', 'c'] }))).toBe(session)
    })

    test('the TTL of the session is that of its other prompts', async () => {
      await takeTurn('turn-1', { marks: ['a'] })
      await takeTurn('turn-2', { marks: ['b'] })
      await calls.setTtl(hours(3) / 1000)

      expect(await beginNamed('turn-3', { marks: ['b'] })).toMatchObject({ record: { ttlSeconds: 10_800 } })
      expect(await beginNamed('turn-4', { marks: ['c'] })).toMatchObject({ record: { ttlSeconds: 10_800 } })
    })

    test('expired, it starts anew under the same key', async () => {
      await takeTurn('turn-1', { marks: ['a'] })
      await advance(hours(2))
      await sweep()
      const revived = await beginNamed('turn-2', { marks: ['b'] })
      await complete('turn-2', slide)

      expect(revived).toMatchObject({ kind: 'expired', ttlSeconds: 3600 })
      expect(await get()).toMatchObject({ turns: 1 })
      expect(await keyOf(beginNamed('turn-3', { marks: ['b', 'c'] }))).toBe(session)
    })

    test('deleted, all its prompts end, and the name starts anew once nothing is left of it', async () => {
      await takeTurn('turn-1', { marks: ['a'] })
      const other = await takeTurn('turn-2', { marks: ['b'] })
      await storeKv('kv-other', 1, { key: other })
      await remove()

      expect(await beginNamed('turn-3')).toEqual({ kind: 'deleted' })
      expect(await get({ key: other })).toBeUndefined()
      expect(await drain()).toEqual([`s:${session}`, `s:${other}`].sort())
      expect(await beginNamed('turn-4')).toMatchObject({ kind: 'created', record: { turns: 0 } })
    })

    test.each([
      { end: 'completes', by: () => complete('running', slide) },
      { end: 'fails', by: () => abandon('running') },
    ])(
      'a turn that runs while its session is deleted keeps the name from starting anew until it $end',
      async ({ by }) => {
        await takeTurn('turn-1')
        await beginNamed('running')
        await remove()
        await drain()
        const during = await beginNamed('during')
        await by()
        const removal = await drain()

        expect(during).toEqual({ kind: 'deleted' })
        expect(removal).toEqual([`s:${session}`])
        expect(await beginNamed('after')).toMatchObject({ kind: 'created' })
      },
    )

    test('of too many, the least recently used one ends that no turn holds', async () => {
      const keys = ['a', 'b', 'c', 'd'].map(sessionKey)
      const [a, b, c, d] = keys
      for (const [index, key] of [a, b, c].entries()) {
        if (key !== undefined) await takeTurn(`turn-${index}`, { key, maxNamedSessions: 3 })
        await complete(`turn-${index}`, { ...(key === undefined ? {} : { key }), ...slide })
        await advance(seconds(10))
      }
      await beginNamed('a-again', { ...(a === undefined ? {} : { key: a }), maxNamedSessions: 3 })
      await beginNamed('turn-d', { ...(d === undefined ? {} : { key: d }), maxNamedSessions: 3 })

      const alive = await Promise.all(keys.map((key) => get({ key })))
      expect(alive.map((record) => record !== undefined)).toEqual([true, false, true, true])
    })

    test('a tenant whose named sessions are all in use gets no other one', async () => {
      for (const name of ['a', 'b']) await beginNamed(`turn-${name}`, { key: sessionKey(name), maxNamedSessions: 2 })

      expect(await beginNamed('late', { maxNamedSessions: 2 })).toEqual({ kind: 'unknown' })
      expect(await beginNamed('other', { tenant: mallory, maxNamedSessions: 2 })).toMatchObject({ kind: 'created' })
      expect(await counts()).toMatchObject({ sessions: 3 })
    })

    test("another tenant's key is unknown", async () => {
      await takeTurn('turn-1')

      expect(await beginNamed('turn-2', { tenant: mallory })).toEqual({ kind: 'unknown' })
      expect(await list(alice)).toMatchObject({ records: [owned] })
    })
  })
}
