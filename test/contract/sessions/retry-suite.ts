import { describe, expect, test } from '@jest/globals'
import type { IdempotencyKey, NewSession } from '../../../src/sessions/session-store.ts'
import { hours, mallory, newSession, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

const retryKey = (change: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
  digest: 'digest-1',
  bodyDigest: 'body-1',
  rememberMs: hours(24),
  use: 'find-or-record',
  ...change,
})

const first = (change: Partial<IdempotencyKey> = {}): NewSession => newSession({ retryOf: retryKey(change) })

/** Every create has an id and a turn of its own; only the retry key tells that it is a repetition. */
const again = (change: Partial<IdempotencyKey> = {}, name = 'again'): NewSession =>
  newSession({ key: sessionKey(name), turnId: `turn-${name}`, retryOf: retryKey(change) })

export const describeRetries = (calls: StoreCalls): void => {
  const { abandon, advance, begin, complete, counts, create, createActive, get, remove, sweep } = calls

  describe('a repeated create', () => {
    test('finds the session of the first one, and takes a lease on it', async () => {
      await createActive(first())
      const record = await get()

      expect(await create(again())).toEqual({ kind: 'existing', record })
      expect(await get(again())).toBeUndefined()
      expect(await complete('turn-again')).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    })

    test.each([
      { name: 'another body', change: { bodyDigest: 'body-2' }, kind: 'key-reused' },
      { name: 'another key', change: { digest: 'digest-2' }, kind: 'created' },
      { name: 'a key that is only recorded', change: { use: 'record-only' }, kind: 'created' },
    ] as const)('with $name is $kind', async ({ change, kind }) => {
      await createActive(first())

      expect(await create(again(change))).toMatchObject({ kind })
      expect(await get()).toMatchObject({ turns: 1 })
    })

    test('of another tenant does not find the session', async () => {
      await createActive(first())

      const record = { key: sessionKey('again'), tenant: mallory }
      expect(await create({ ...again(), tenant: mallory })).toMatchObject({ kind: 'created', record })
    })

    test('finds a session whose key was only recorded', async () => {
      await createActive(first({ use: 'record-only' }))

      expect(await create(again())).toMatchObject({ kind: 'existing', record: { key: session } })
    })

    test('finds neither of two sessions that recorded the key, until the key is forgotten', async () => {
      await createActive(first({ use: 'record-only' }))
      await createActive(again({ use: 'record-only' }))
      for (const name of ['third', 'fourth']) {
        const record = { key: sessionKey(name) }
        expect(await create(again({}, name))).toMatchObject({ kind: 'created', record })
      }
      await advance(hours(24))
      await create(again({}, 'fifth'))

      expect(await create(again({}, 'sixth'))).toMatchObject({ record: { key: sessionKey('fifth') } })
    })

    test.each([
      { name: 'was deleted', end: () => remove() },
      { name: 'has expired', end: () => advance(hours(1)) },
    ])('of a session that $name creates a new one, which the key names from then on', async ({ end }) => {
      await createActive(first())
      await end()

      const record = { key: sessionKey('again') }
      expect(await create(again())).toMatchObject({ kind: 'created', record })
      expect(await create(again({}, 'third'))).toMatchObject({ kind: 'existing', record })
    })

    test.each([
      { name: 'failed', end: () => abandon('turn-1'), bodyDigest: 'body-2' },
      { name: 'was swept', end: () => advance(seconds(60)).then(() => sweep()), bodyDigest: 'body-2' },
      { name: 'ran out of its lease', end: () => advance(seconds(60)), bodyDigest: 'body-1' },
    ])('of a create that $name creates a new session', async ({ end, bodyDigest }) => {
      await create(first())
      await end()

      expect(await create(again({ bodyDigest }))).toMatchObject({ kind: 'created' })
      expect(await counts()).toEqual({ removals: 1, sessions: 1 })
    })

    test('of a create that ran out of its lease is refused, with another body, until the sweep', async () => {
      await create(first())
      await advance(seconds(60))

      expect(await create(again({ bodyDigest: 'body-2' }))).toEqual({ kind: 'key-reused' })
      expect(await create(again({ bodyDigest: 'body-2' }))).toEqual({ kind: 'key-reused' })
    })

    test('finds neither of two sessions that recorded the key, also after the create of one failed', async () => {
      await create(first({ use: 'record-only' }))
      await createActive(again({ use: 'record-only' }))
      await abandon('turn-1')

      expect(await create(again({}, 'third'))).toMatchObject({ kind: 'created' })
      expect(await create(again({}, 'fourth'))).toMatchObject({ kind: 'created' })
    })

    test('creates a new session once the key is forgotten, counted from the first create', async () => {
      await createActive({ ...first({ rememberMs: hours(1) }), ttlSeconds: 7200 })
      await advance(hours(0.5))
      expect(await create(again())).toMatchObject({ kind: 'existing' })
      await advance(hours(0.5))

      expect(await create(again())).toMatchObject({ kind: 'created' })
    })

    test('under the same id finds the one session', async () => {
      await create()

      expect(await create()).toMatchObject({ kind: 'existing', record: { key: session } })
      expect(await complete('turn-1')).toMatchObject({ record: { turns: 1 } })
      expect(await begin()).toMatchObject({ kind: 'active' })
      expect(await counts()).toEqual({ removals: 0, sessions: 1 })
    })
  })
}
