import { describe, expect, test } from '@jest/globals'
import type { IdempotencyKey, NewSession } from '../../../src/sessions/session-store.ts'
import {
  aTurn,
  completed,
  createActive,
  hours,
  mallory,
  newSession,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
} from './store-under-test.ts'

const retryKey = (change: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
  digest: 'digest-1',
  bodyDigest: 'body-1',
  rememberMs: hours(24),
  use: 'find-or-record',
  ...change,
})

const first = (change: Partial<IdempotencyKey> = {}): NewSession => newSession({ retryOf: retryKey(change) })

/** The gateway gives every create an id and a turn of its own; only the retry key tells that it is a repetition. */
const again = (change: Partial<IdempotencyKey> = {}, name = 'again'): NewSession =>
  newSession({ key: sessionKey(name), turnId: `turn-${name}`, retryOf: retryKey(change) })

export const describeRetries = (make: () => Promise<StoreUnderTest>): void => {
  describe('repeated creates', () => {
    test('find the session that the first one wrote, and hold it', async () => {
      const under = await make()
      await createActive(under, first())
      const record = await under.store.get(owned)

      expect(await under.store.create(again())).toEqual({ kind: 'existing', record })
      expect(await under.store.get(again())).toBeUndefined()
      expect(await under.store.complete(completed('turn-again'))).toMatchObject({
        kind: 'completed',
        record: { turns: 2 },
      })
    })

    test('find a session whose first turn still runs', async () => {
      const under = await make()
      await under.store.create(first())
      expect(await under.store.create(again())).toMatchObject({ kind: 'existing', record: { key: session, turns: 0 } })

      await under.store.abandon({ key: session, turnId: 'turn-1' })
      expect(await under.store.complete(completed('turn-again'))).toMatchObject({
        kind: 'completed',
        record: { turns: 1 },
      })
    })

    test('are held by their lease like any turn', async () => {
      const under = await make()
      await createActive(under, { ...first(), ttlSeconds: 1 })
      await under.store.create(again())
      await under.advance(seconds(30))

      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.complete(completed('turn-again'))).toMatchObject({ kind: 'completed' })
    })

    test.each([
      { name: 'another body', change: { bodyDigest: 'body-2' }, kind: 'key-reused' },
      { name: 'another key', change: { digest: 'digest-2' }, kind: 'created' },
      { name: 'a key that is only recorded', change: { use: 'record-only' }, kind: 'created' },
    ] as const)('with $name are $kind', async ({ change, kind }) => {
      const under = await make()
      await createActive(under, first())

      expect(await under.store.create(again(change))).toMatchObject({ kind })
      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
    })

    test("of another tenant never find anyone's session", async () => {
      const under = await make()
      await createActive(under, first())

      expect(await under.store.create({ ...again(), tenant: mallory })).toMatchObject({
        kind: 'created',
        record: { key: sessionKey('again'), tenant: mallory },
      })
    })

    test('a recorded key is found by the next create that looks for it', async () => {
      const under = await make()
      await createActive(under, first({ use: 'record-only' }))

      expect(await under.store.create(again())).toMatchObject({ kind: 'existing', record: { key: session } })
    })

    test('a recorded key names the later session when the earlier one has ended', async () => {
      const under = await make()
      await createActive(under, first({ use: 'record-only' }))
      await under.store.remove(owned)
      await under.store.create(again({ use: 'record-only' }))

      expect(await under.store.create(again({}, 'third'))).toMatchObject({
        kind: 'existing',
        record: { key: sessionKey('again') },
      })
    })

    test('a key that two sessions have recorded finds neither, for as long as it is remembered', async () => {
      const under = await make()
      await createActive(under, first({ use: 'record-only' }))
      await createActive(under, again({ use: 'record-only' }))
      for (const name of ['third', 'fourth']) {
        expect(await under.store.create(again({}, name))).toMatchObject({
          kind: 'created',
          record: { key: sessionKey(name) },
        })
      }
      await under.advance(hours(24))
      await under.store.create(again({}, 'fifth'))

      expect(await under.store.create(again({}, 'sixth'))).toMatchObject({ record: { key: sessionKey('fifth') } })
    })

    test.each([
      { name: 'deleted', end: (under: StoreUnderTest) => under.store.remove(owned) },
      { name: 'expired', end: (under: StoreUnderTest) => under.advance(hours(1)) },
    ])('of a session that was $name meanwhile create a new one, and name that from then on', async ({ end }) => {
      const under = await make()
      await createActive(under, first())
      await end(under)

      expect(await under.store.create(again())).toMatchObject({ kind: 'created', record: { key: sessionKey('again') } })
      expect(await under.store.create(again({}, 'third'))).toMatchObject({
        kind: 'existing',
        record: { key: sessionKey('again') },
      })
    })

    test.each([
      {
        name: 'failed',
        end: (under: StoreUnderTest) => under.store.abandon({ key: session, turnId: 'turn-1' }),
      },
      { name: 'never ended', end: (under: StoreUnderTest) => under.advance(seconds(60)) },
    ])('of a create that $name may even send another body', async ({ end }) => {
      const under = await make()
      await under.store.create(first())
      await end(under)
      await under.store.expireDue(10)

      expect(await under.store.create(again({ bodyDigest: 'body-2' }))).toMatchObject({ kind: 'created' })
    })

    test('of a create that never ended create a new one even before the sweep', async () => {
      const under = await make()
      await under.store.create(first())
      await under.advance(seconds(60))

      expect(await under.store.create(again())).toMatchObject({ kind: 'created' })
      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 1 })
    })

    test('of a create whose lease ran out are, with another body, refused each time until the sweep', async () => {
      const under = await make()
      await under.store.create(first())
      await under.advance(seconds(60))

      expect(await under.store.create(again({ bodyDigest: 'body-2' }))).toEqual({ kind: 'key-reused' })
      expect(await under.store.create(again({ bodyDigest: 'body-2' }))).toEqual({ kind: 'key-reused' })
    })

    test('a create that failed does not take the key of a later one with it', async () => {
      const under = await make()
      await under.store.create({ ...first(), leaseMs: 1000 })
      await under.advance(seconds(1))
      await createActive(under, again())
      await under.store.abandon({ key: session, turnId: 'turn-1' })

      expect(await under.store.create(again({}, 'third'))).toMatchObject({ kind: 'existing' })
    })

    test('a key is forgotten after its time, counted from the first create', async () => {
      const under = await make()
      await createActive(under, { ...first({ rememberMs: hours(1) }), ttlSeconds: 7200 })
      await under.advance(hours(0.5))
      expect(await under.store.create(again())).toMatchObject({ kind: 'existing' })
      await under.advance(hours(0.5))

      expect(await under.store.create(again())).toMatchObject({ kind: 'created' })
    })

    test('a create that is written twice under one id is one session', async () => {
      const under = await make()
      await under.store.create(newSession())

      expect(await under.store.create(newSession())).toMatchObject({ kind: 'existing', record: { key: session } })
      expect(await under.store.complete(completed('turn-1'))).toMatchObject({ record: { turns: 1 } })
      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'active' })
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 1 })
    })
  })
}
