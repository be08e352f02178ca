import { describe, expect, test } from '@jest/globals'
import { type TenantName, tenantNameOf } from '../../../src/sessions/session-directory.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { alice, mallory, type StoreCalls, seconds, sessionKey } from './store-under-test.ts'

const keys = Array.from({ length: 7 }, (_, index) => sessionKey(`session-${index}`))
const newestFirst = keys.toReversed()

export const describeListing = (calls: StoreCalls): void => {
  const { advance, createActive, get, remove, setTtl, store, sweep } = calls

  /** Seven sessions, one second apart. */
  const createSeven = async (): Promise<void> => {
    for (const key of keys) {
      await createActive({ key })
      await advance(seconds(1))
    }
  }
  const page = async (limit: number, after?: SessionKey) => {
    const { records, hasMore } = await store().list({ tenant: alice, limit, after })
    return { keys: records.map(({ key }) => key), hasMore }
  }
  const allPages = async (limit: number): Promise<readonly (readonly SessionKey[])[]> => {
    const pages: (readonly SessionKey[])[] = []
    for (let more = true; more; ) {
      const { keys: found, hasMore } = await page(limit, pages.at(-1)?.at(-1))
      pages.push(found)
      more = hasMore
    }
    return pages
  }

  describe('list', () => {
    test.each([
      { limit: 3, pages: 3 },
      { limit: 7, pages: 1 },
    ])('with limit $limit returns every session of the tenant once in $pages pages, newest first', async (row) => {
      await createSeven()
      await createActive({ key: sessionKey('foreign'), tenant: mallory })

      const pages = await allPages(row.limit)
      expect(pages.flat()).toEqual(newestFirst)
      expect(pages).toHaveLength(row.pages)
      const { records } = await store().list({ tenant: alice, limit: 1, after: undefined })
      expect(records).toEqual([await get({ key: sessionKey('session-6') })])
    })

    test('continues after a page although a newer session was created', async () => {
      await createSeven()
      const first = await page(3)
      await createActive({ key: sessionKey('newcomer') })

      expect(first.keys).toEqual(newestFirst.slice(0, 3))
      expect(await page(10, first.keys.at(-1))).toEqual({ keys: newestFirst.slice(3), hasMore: false })
    })

    test.each([
      { name: 'was deleted', end: (key: SessionKey) => remove({ key }) },
      {
        name: 'has expired',
        end: async (key: SessionKey) => {
          await setTtl(10, { key })
          await advance(seconds(10))
        },
      },
      {
        name: 'has expired and was swept',
        end: async (key: SessionKey) => {
          await setTtl(10, { key })
          await advance(seconds(10))
          await sweep()
        },
      },
    ])('continues at its place when the last session of a page $name', async ({ end }) => {
      await createSeven()
      await end(sessionKey('session-4'))

      expect(await page(2, sessionKey('session-4'))).toEqual({ keys: newestFirst.slice(3, 5), hasMore: true })
    })

    test.each(['unknown', 'foreign'])('starts over after a session that is %s', async (name) => {
      await createActive({ key: sessionKey('foreign'), tenant: mallory })
      await advance(seconds(1))
      await createSeven()

      expect(await page(2, sessionKey(name))).toEqual({ keys: newestFirst.slice(0, 2), hasMore: true })
    })

    test('leaves out ended sessions, swept or not, and does not promise a page of them', async () => {
      await createSeven()
      await remove({ key: sessionKey('session-6') })
      for (const name of ['session-5', 'session-3', 'session-0']) await setTtl(10, { key: sessionKey(name) })
      await advance(seconds(10))

      const left = ['session-4', 'session-2', 'session-1'].map(sessionKey)
      expect(await page(2)).toEqual({ keys: left.slice(0, 2), hasMore: true })
      expect(await page(3)).toEqual({ keys: left, hasMore: false })
      expect(await allPages(2)).toEqual([left.slice(0, 2), left.slice(2)])
    })
  })

  describe('the directory of operators', () => {
    const allOf = async (tenant: TenantName | undefined, limit: number) => {
      const pages: (readonly string[])[] = []
      for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
        const { records, next } = await store().page({ tenant, limit, after })
        pages.push(records.map((record) => record.key))
        after = next
      }
      return pages
    }

    test.each([3, 7])('pages of %d hold every session of a tenant once, newest first', async (limit) => {
      await createSeven()
      await createActive({ key: sessionKey('foreign'), tenant: mallory })
      expect((await allOf(tenantNameOf(alice), limit)).flat()).toEqual(newestFirst)
    })

    test('pages of all hold the sessions of every tenant once, and none that has ended', async () => {
      await createSeven()
      await createActive({ key: sessionKey('foreign'), tenant: mallory })
      await remove({ key: sessionKey('session-2') })
      await createActive({ key: sessionKey('short'), ttlSeconds: 1 })
      await advance(seconds(2))
      const left = [...keys.filter((key) => key !== sessionKey('session-2')), sessionKey('foreign')]
      expect((await allOf(undefined, 3)).flat().sort()).toEqual(left.sort())
    })

    test('a session is found by its key alone, as its tenant sees it', async () => {
      await createSeven()
      const found = await store().find(keys[0] ?? sessionKey('none'))
      const own = await get({ key: sessionKey('session-0') })
      expect({ ...found, tenant: tenantNameOf(found?.tenant ?? '') }).toEqual({ ...own, tenant: tenantNameOf(alice) })
      expect(await store().find(sessionKey('unknown'))).toBeUndefined()
    })

    test('what it names as tenant removes the session', async () => {
      await createSeven()
      const found = await store().find(keys[0] ?? sessionKey('none'))
      expect(await store().remove({ key: sessionKey('session-0'), tenant: found?.tenant ?? mallory })).toBe(true)
      expect(await store().find(sessionKey('session-0'))).toBeUndefined()
    })
  })
}
