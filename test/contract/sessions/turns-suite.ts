import { describe, expect, test } from '@jest/globals'
import { maxLeases } from '../../../src/sessions/limits.ts'
import {
  alice,
  aTurn,
  claimAll,
  claimOne,
  completed,
  createActive,
  drain,
  hours,
  mallory,
  newSession,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  storeKv,
} from './store-under-test.ts'

export const describeTurns = (make: () => Promise<StoreUnderTest>): void => {
  describe('turns', () => {
    test('begin shows the session and the time', async () => {
      const under = await make()
      const record = await createActive(under)
      const before = await under.nowMs()
      const outcome = await under.store.begin(aTurn('turn-2'))
      const after = await under.nowMs()

      expect(outcome).toEqual({ kind: 'active', record: record, nowMs: expect.any(Number) })
      expect(outcome).toMatchObject({ nowMs: expect.any(Number) })
      const nowMs = outcome.kind === 'active' ? outcome.nowMs : Number.NaN
      expect(nowMs).toBeGreaterThanOrEqual(before)
      expect(nowMs).toBeLessThanOrEqual(after)
    })

    test('a session that is still being created can be used already', async () => {
      const under = await make()
      await under.store.create(newSession())

      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({
        kind: 'active',
        record: { pod: '10.0.0.1:8000' },
      })
      expect(await under.store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed', record: { turns: 1 } })
      await under.store.abandon({ key: session, turnId: 'turn-1' })
      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
    })

    test('completed turns add up, and the last one says where the session lies', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      const outcome = await under.store.complete(
        completed('turn-2', { pod: '10.0.0.3:8000', usage: { prompt: 5, output: 6, cached: 0 } }),
      )

      expect(outcome).toMatchObject({
        kind: 'completed',
        record: { turns: 2, pod: '10.0.0.3:8000', tokens: { prompt: 1005, output: 106, cached: 900 } },
      })
      expect(await under.store.get(owned)).toEqual(outcome.kind === 'completed' ? outcome.record : undefined)
    })

    test.each([
      {
        name: 'fractions',
        usage: { prompt: 1.9, output: 0.5, cached: 1.1 },
        added: { prompt: 1, output: 0, cached: 1 },
      },
      {
        name: 'numbers that are none',
        usage: { prompt: Number.NaN, output: Number.POSITIVE_INFINITY, cached: -5 },
        added: { prompt: 0, output: 0, cached: 0 },
      },
      {
        name: 'more than can be counted',
        usage: { prompt: 1e300, output: 1, cached: 0 },
        added: { prompt: 999_999_999_999_999, output: 1, cached: 0 },
      },
    ])('a session stays readable when an engine reports $name', async ({ usage, added }) => {
      const under = await make()
      await under.store.create(newSession())
      await under.store.complete(completed('turn-1', { usage }))

      expect(await under.store.get(owned)).toMatchObject({ turns: 1, tokens: added })
      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'active' })
    })

    test('a turn that is reported twice counts once', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      const first = await under.store.complete(completed('turn-2'))
      const again = await under.store.complete(completed('turn-2', { pod: '10.9.9.9:1' }))

      expect(first.kind).toBe('completed')
      expect(again.kind).toBe('completed')
      expect(again.kind === 'completed' && again.record).toEqual(first.kind === 'completed' && first.record)
      expect(await under.store.get(owned)).toMatchObject({ turns: 2, pod: '10.0.0.2:8000' })
    })

    test('a turn that never began counts nothing', async () => {
      const under = await make()
      const record = await createActive(under)

      expect(await under.store.complete(completed('turn-9'))).toEqual({ kind: 'completed', record })
    })

    test('a turn that is begun twice is one turn', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      await under.store.begin(aTurn('turn-2'))
      await under.store.complete(completed('turn-2'))
      await under.store.complete(completed('turn-2'))

      expect(await under.store.get(owned)).toMatchObject({ turns: 2 })
    })

    test('a failed turn changes nothing', async () => {
      const under = await make()
      const record = await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      await under.store.abandon({ key: session, turnId: 'turn-2' })
      await under.store.abandon({ key: session, turnId: 'turn-2' })

      expect(await under.store.get(owned)).toEqual(record)
      expect(await under.store.complete(completed('turn-2'))).toEqual({ kind: 'completed', record })
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 1 })
    })

    test.each([
      { name: 'in their order', order: ['a', 'b', 'c'] },
      { name: 'in reverse', order: ['c', 'b', 'a'] },
      { name: 'crosswise', order: ['b', 'c', 'a'] },
    ])('overlapping turns that end $name all count, and the last to end wins', async ({ order }) => {
      const under = await make()
      await createActive(under)
      for (const turnId of ['a', 'b', 'c']) await under.store.begin(aTurn(turnId))
      for (const turnId of order) await under.store.complete(completed(turnId, { pod: `pod-${turnId}:1` }))

      expect(await under.store.get(owned)).toMatchObject({
        turns: 4,
        pod: `pod-${order[2]}:1`,
        tokens: { prompt: 4000, output: 400, cached: 3600 },
      })
    })

    test('fifty turns at once lose nothing', async () => {
      const under = await make()
      await createActive(under)
      const turnIds = Array.from({ length: 50 }, (_, index) => `parallel-${index}`)
      const outcomes = await Promise.all(turnIds.map((turnId) => under.store.begin(aTurn(turnId))))
      await Promise.all(turnIds.map((turnId) => under.store.complete(completed(turnId))))

      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['active']))
      expect(await under.store.get(owned)).toMatchObject({ turns: 51, tokens: { prompt: 51_000 } })
    })

    test.each([
      { name: 'first', failed: 'a' },
      { name: 'second', failed: 'b' },
      { name: 'last', failed: 'c' },
    ])('of overlapping turns the $name may fail', async ({ failed }) => {
      const under = await make()
      await createActive(under)
      for (const turnId of ['a', 'b', 'c']) await under.store.begin(aTurn(turnId))
      for (const turnId of ['a', 'b', 'c']) {
        if (turnId === failed) await under.store.abandon({ key: session, turnId })
        else await under.store.complete(completed(turnId))
      }

      expect(await under.store.get(owned)).toMatchObject({ turns: 3 })
    })

    test.each([
      { name: 'keep leaves the deadline', expiry: { kind: 'keep' }, ttlSeconds: 3600, fromNowMs: hours(0.5) },
      { name: 'slide counts the TTL from now', expiry: { kind: 'slide' }, ttlSeconds: 3600, fromNowMs: hours(1) },
    ] as const)('$name', async ({ expiry, ttlSeconds, fromNowMs }) => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(0.5))
      await under.store.begin(aTurn('turn-2'))
      await under.store.complete(completed('turn-2', { expiry }))
      const record = await under.store.get(owned)

      expect(record?.ttlSeconds).toBe(ttlSeconds)
      await under.advance(fromNowMs - seconds(60))
      expect(await under.store.get(owned)).toBeDefined()
      await under.advance(seconds(60))
      expect(await under.store.get(owned)).toBeUndefined()
    })

    test('of more turns than a session keeps leases for, the one whose lease ends first is not counted', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('late', 70_000))
      await under.store.begin(aTurn('early', 50_000))
      for (let turn = 3; turn <= maxLeases; turn++) await under.store.begin(aTurn(`turn-${turn}`))
      expect(await under.store.complete(completed('turn-3'))).toMatchObject({ record: { turns: 2 } })
      await under.store.begin(aTurn('one-more'))
      await under.store.begin(aTurn('too-many'))

      expect(await under.store.complete(completed('early'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(await under.store.complete(completed('too-many'))).toMatchObject({ record: { turns: 3 } })
      expect(await under.store.complete(completed('late'))).toMatchObject({ record: { turns: 4 } })
    })

    test('however many turns never end, the longest lease holds the session, and nothing else does', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('longest', hours(2)))
      for (let turn = 0; turn < 2 * maxLeases; turn++) await under.store.begin(aTurn(`turn-${turn}`))
      await under.advance(hours(2) - seconds(60))

      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
      await under.advance(seconds(60))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('set takes the deadline that the answer announced, and its TTL', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      const expiresAtMs = (await under.nowMs()) + seconds(90)
      await under.store.complete(completed('turn-2', { expiry: { kind: 'set', ttlSeconds: 90, expiresAtMs } }))

      expect(await under.store.get(owned)).toMatchObject({ ttlSeconds: 90, expiresAtMs })
      await under.advance(seconds(90))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('a create that failed leaves nothing but the removal of what it may have left in a pod', async () => {
      const under = await make()
      await under.store.create(newSession())
      await under.store.abandon({ key: session, turnId: 'turn-1' })

      expect(await under.store.get(owned)).toBeUndefined()
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'unknown' })
      expect(await under.store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({
        records: [],
        hasMore: false,
      })
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
      expect(await under.store.complete(completed('turn-1'))).toEqual({ kind: 'gone' })
    })

    test('a create that failed while another turn runs leaves the session to that turn', async () => {
      const under = await make()
      await under.store.create(newSession())
      await under.store.begin(aTurn('turn-2'))
      await under.store.abandon({ key: session, turnId: 'turn-1' })
      expect(await under.store.get(owned)).toMatchObject({ turns: 0 })

      await under.store.abandon({ key: session, turnId: 'turn-2' })
      expect(await under.store.get(owned)).toBeUndefined()
    })

    test.each([
      { name: 'completes', end: (under: StoreUnderTest) => under.store.complete(completed('turn-2')) },
      { name: 'fails', end: (under: StoreUnderTest) => under.store.abandon({ key: session, turnId: 'turn-2' }) },
    ])('a turn that $name after the session was deleted has its leavings removed', async ({ end }) => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      await under.store.remove(owned)
      expect(await drain(under)).toEqual([`s:${session}`])
      expect(await claimAll(under)).toEqual({})

      await end(under)
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
      expect(await under.store.get(owned)).toBeUndefined()
    })

    test('a turn that ends while the removal is under way makes it come once more', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'artefact-1', 1)
      await under.store.begin(aTurn('turn-2'))
      await under.store.remove(owned)
      const first = await claimOne(under)

      expect(await under.store.complete(completed('turn-2'))).toEqual({ kind: 'gone' })
      expect(await claimAll(under)).toEqual({})
      await under.store.ack([first])
      const second = await claimOne(under)
      expect(second).toMatchObject({ id: `s:${session}`, payload: '{"file":"artefact-1"}' })
      expect(await drain(under)).toEqual([])
      await under.store.ack([second])
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a claim that comes after the turn ended covers it', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))
      await under.store.remove(owned)
      await under.store.claim({ limit: 1, leaseMs: 10_000 })
      await under.store.complete(completed('turn-2'))
      await under.advance(seconds(10))

      expect(await drain(under)).toEqual([`s:${session}`])
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a turn of a forgotten session has its leavings removed', async () => {
      const under = await make()

      expect(await under.store.complete(completed('turn-1'))).toEqual({ kind: 'gone' })
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
    })

    test('a foreign turn of a deleted session removes nothing', async () => {
      const under = await make()
      await createActive(under)
      await under.store.remove(owned)
      await drain(under)

      expect(await under.store.complete(completed('turn-2', { tenant: mallory }))).toEqual({ kind: 'gone' })
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })
  })
}
