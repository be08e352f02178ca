import { describe, expect, test } from '@jest/globals'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import {
  alice,
  completed,
  createActive,
  hours,
  mallory,
  newSession,
  type StoreUnderTest,
  seconds,
  sessionKey,
} from './store-under-test.ts'

const names = Array.from({ length: 7 }, (_, index) => `session-${index}`)
const keys = names.map(sessionKey)
const newestFirst = keys.toReversed()

/** Seven sessions, one second apart. */
const createSeven = async (under: StoreUnderTest): Promise<void> => {
  for (const key of keys) {
    await createActive(under, { key })
    await under.advance(seconds(1))
  }
}

const page = async ({ store }: StoreUnderTest, limit: number, after: SessionKey | undefined) => {
  const { records, hasMore } = await store.list({ tenant: alice, limit, after })
  return { keys: records.map(({ key }) => key), hasMore }
}

const allPages = async (under: StoreUnderTest, limit: number): Promise<readonly SessionKey[]> => {
  const seen: SessionKey[] = []
  for (let more = true; more; ) {
    const { keys: found, hasMore } = await page(under, limit, seen.at(-1))
    seen.push(...found)
    more = hasMore
  }
  return seen
}

export const describeListing = (make: () => Promise<StoreUnderTest>): void => {
  describe('listing', () => {
    test.each([
      { limit: 1, pages: 7 },
      { limit: 2, pages: 4 },
      { limit: 3, pages: 3 },
      { limit: 7, pages: 1 },
      { limit: 100, pages: 1 },
    ])('by $limit shows every session once, newest first, as the store knows it', async ({ limit }) => {
      const under = await make()
      await createSeven(under)
      await createActive(under, { key: sessionKey('foreign'), tenant: mallory })

      expect(await allPages(under, limit)).toEqual(newestFirst)
      const { records } = await under.store.list({ tenant: alice, limit: 1, after: undefined })
      expect(records).toEqual([await under.store.get({ key: sessionKey('session-6'), tenant: alice })])
    })

    test.each([
      { name: 'exactly full', limit: 7, hasMore: false },
      { name: 'one short', limit: 6, hasMore: true },
    ])('says whether more follows when a page is $name', async ({ limit, hasMore }) => {
      const under = await make()
      await createSeven(under)

      expect(await page(under, limit, undefined)).toMatchObject({ hasMore })
    })

    test('shows sessions of one moment once each', async () => {
      const under = await make()
      await Promise.all(keys.map((key) => under.store.create(newSession({ key }))))

      expect([...(await allPages(under, 2))].sort()).toEqual([...keys].sort())
    })

    test('a new session does not disturb the pages that follow', async () => {
      const under = await make()
      await createSeven(under)
      const first = await page(under, 3, undefined)
      await createActive(under, { key: sessionKey('newcomer') })

      expect(first.keys).toEqual(newestFirst.slice(0, 3))
      expect(await page(under, 10, first.keys.at(-1))).toEqual({ keys: newestFirst.slice(3), hasMore: false })
    })

    test.each([
      {
        name: 'was deleted',
        end: (under: StoreUnderTest, key: SessionKey) => under.store.remove({ key, tenant: alice }),
      },
      {
        name: 'has expired',
        end: async (under: StoreUnderTest, key: SessionKey) => {
          await under.store.setTtl({ key, tenant: alice, ttlSeconds: 10 })
          await under.advance(seconds(10))
        },
      },
      {
        name: 'has expired and was swept',
        end: async (under: StoreUnderTest, key: SessionKey) => {
          await under.store.setTtl({ key, tenant: alice, ttlSeconds: 10 })
          await under.advance(seconds(10))
          await under.store.expireDue(10)
        },
      },
    ])('goes on in its place when the last session of a page $name', async ({ end }) => {
      const under = await make()
      await createSeven(under)
      await end(under, sessionKey('session-4'))

      expect(await page(under, 2, sessionKey('session-4'))).toEqual({ keys: newestFirst.slice(3, 5), hasMore: true })
    })

    test('starts over when nothing is known of the last session any more', async () => {
      const under = await make()
      await createSeven(under)

      expect(await page(under, 2, sessionKey('never'))).toEqual({ keys: newestFirst.slice(0, 2), hasMore: true })
    })

    test("starts over at another tenant's session", async () => {
      const under = await make()
      await createActive(under, { key: sessionKey('foreign'), tenant: mallory })
      await under.advance(seconds(1))
      await createSeven(under)

      expect(await page(under, 2, sessionKey('foreign'))).toEqual({ keys: newestFirst.slice(0, 2), hasMore: true })
    })

    test('leaves out what has ended, whether swept or not', async () => {
      const under = await make()
      await createSeven(under)
      await under.store.remove({ key: sessionKey('session-6'), tenant: alice })
      await under.store.setTtl({ key: sessionKey('session-5'), tenant: alice, ttlSeconds: 10 })
      await under.store.setTtl({ key: sessionKey('session-3'), tenant: alice, ttlSeconds: 10 })
      await under.advance(seconds(10))

      expect(await page(under, 2, undefined)).toEqual({
        keys: [sessionKey('session-4'), sessionKey('session-2')],
        hasMore: true,
      })
      expect(await allPages(under, 2)).toEqual(['session-4', 'session-2', 'session-1', 'session-0'].map(sessionKey))
    })

    test('ends when everything behind a page has expired', async () => {
      const under = await make()
      await createActive(under, { key: sessionKey('old'), ttlSeconds: 60 })
      await under.advance(seconds(1))
      await createActive(under, { key: sessionKey('new') })
      await under.advance(seconds(60))

      expect(await page(under, 1, undefined)).toEqual({ keys: [sessionKey('new')], hasMore: false })
    })

    test('a revived session is the newest', async () => {
      const under = await make()
      const key = sessionKey('session-0')
      await createSeven(under)
      await under.store.setTtl({ key, tenant: alice, ttlSeconds: 10 })
      await under.advance(seconds(10))
      await under.store.begin({ key, tenant: alice, turnId: 'again', leaseMs: 60_000 })
      await under.store.complete(completed('again', { key }))

      expect(await allPages(under, 3)).toEqual([key, ...newestFirst.slice(0, 6)])
    })

    test('stays complete while sessions come and go', async () => {
      const under = await make()
      await createSeven(under)
      for (const key of keys.slice(0, 6)) await under.store.remove({ key, tenant: alice })
      for (const name of ['x', 'y', 'z']) {
        await createActive(under, { key: sessionKey(name), ttlSeconds: 7200 })
        await under.advance(seconds(1))
      }

      expect(await allPages(under, 2)).toEqual(['z', 'y', 'x', 'session-6'].map(sessionKey))
      await under.advance(hours(1))
      expect(await allPages(under, 2)).toEqual(['z', 'y', 'x'].map(sessionKey))
    })
  })
}
