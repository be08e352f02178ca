import { describe, expect, test } from '@jest/globals'
import {
  announceFor,
  artefactNames,
  aTurn,
  claimAll,
  claimOne,
  completed,
  createActive,
  drain,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  storedKv,
  storeKv,
  testSupersededGraceMs,
} from './store-under-test.ts'

const payloadOf = (artefactId: string): string => storedKv(artefactId, 0).payload

export const describeStoredKv = (make: () => Promise<StoreUnderTest>): void => {
  describe.each(artefactNames)('stored KV, with artefacts $name', ({ named }) => {
    test('a committed artefact belongs to its session and is not removed', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'), { graceMs: 10_000 })
      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(true)
      await under.advance(seconds(60))

      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-1'), 1), kvStatus: undefined })
      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({
        record: { kv: storedKv(named('artefact-1'), 1) },
      })
      expect(await claimAll(under)).toEqual({})
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 1 })
    })

    test.each([
      { name: 'empty', payload: '' },
      { name: 'with line feeds', payload: '\nline\nline\n' },
      { name: 'of 100 KB', payload: 'x'.repeat(100_000) },
      { name: 'of many scripts', payload: 'é漢🦙\u0000' },
    ])('a payload $name comes back unchanged', async ({ payload }) => {
      const under = await make()
      await createActive(under)
      await under.store.announce({ artefactId: named('artefact-1'), session, payload, graceMs: 60_000 })
      await under.store.commitKv({ key: session, kv: { ...storedKv(named('artefact-1'), 1), payload } })
      expect(await under.store.get(owned)).toMatchObject({ kv: { payload } })

      await under.store.remove(owned)
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: payload })
    })

    test('what the offload says of the payload replaces what was announced', async () => {
      const under = await make()
      await createActive(under)
      await under.store.announce({ artefactId: named('artefact-1'), session, payload: 'before', graceMs: 60_000 })
      await under.store.commitKv({ key: session, kv: { ...storedKv(named('artefact-1'), 1), payload: 'after' } })

      expect(await under.store.get(owned)).toMatchObject({ kv: { payload: 'after' } })
    })

    test('an artefact that is never committed becomes due after its grace', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'), { graceMs: 10_000 })
      await under.advance(seconds(9))
      expect(await claimAll(under)).toEqual({})
      await under.advance(seconds(1))

      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
      expect(await under.store.get(owned)).toMatchObject({ kv: undefined })
    })

    test('a later artefact replaces an earlier one, which goes after a short grace', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      expect(await storeKv(under, named('artefact-2'), 2)).toBe(true)

      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-2'), 2) })
      await under.advance(testSupersededGraceMs - 2000)
      expect(await claimAll(under)).toEqual({})
      await under.advance(2000)
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test('an earlier artefact that comes late loses, and goes at once', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'))
      await storeKv(under, named('artefact-2'), 2)
      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(false)

      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-2'), 2) })
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test('an artefact of the same turn replaces', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)

      expect(await storeKv(under, named('artefact-1b'), 1)).toBe(true)
      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-1b'), 1) })
    })

    test('a commit that is repeated changes nothing', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)

      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(true)
      await under.advance(seconds(3000))
      expect(await claimAll(under)).toEqual({})
      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-1'), 1) })
    })

    test('a commit that is repeated after the session has ended does not queue its artefact twice', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await under.store.remove(owned)

      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(false)
      const removal = await claimOne(under)
      expect(removal).toMatchObject({ id: `s:${session}`, payload: payloadOf(named('artefact-1')) })
      await under.store.ack([removal])
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('an artefact whose removal has begun cannot be committed any more', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'), { graceMs: 10_000 })
      await under.advance(seconds(10))
      await under.store.claim({ limit: 1, leaseMs: 60_000 })

      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(false)
      expect(await under.store.get(owned)).toMatchObject({ kv: undefined })
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test('an artefact that was removed cannot be committed any more, and is removed again', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'), { graceMs: 10_000 })
      await under.advance(seconds(10))
      await drain(under)

      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-1'), 1) })).toBe(false)
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test.each([
      { name: 'was deleted', end: (under: StoreUnderTest) => under.store.remove(owned) },
      { name: 'has expired', end: (under: StoreUnderTest) => under.advance(seconds(3600)) },
    ])('a commit to a session that $name fails, and both artefacts go', async ({ end }) => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await announceFor(under, named('artefact-2'), { graceMs: seconds(7200) })
      await end(under)

      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-2'), 2) })).toBe(false)
      expect(await claimAll(under)).toEqual({
        [`s:${session}`]: payloadOf(named('artefact-1')),
        [`a:${named('artefact-2')}`]: payloadOf(named('artefact-2')),
      })
    })

    test('a commit to an unknown session fails, and the artefact goes', async () => {
      const under = await make()

      expect(await storeKv(under, named('artefact-1'), 1)).toBe(false)
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test('a note tells why there is no stored KV, and keeps the artefact of an earlier turn', async () => {
      const under = await make()
      await createActive(under)
      await under.store.setKvStatus({ key: session, status: 'too_short' })
      expect(await under.store.get(owned)).toMatchObject({ kv: undefined, kvStatus: 'too_short' })

      await storeKv(under, named('artefact-1'), 1)
      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-1'), 1), kvStatus: undefined })
      await under.store.setKvStatus({ key: session, status: 'offload_failed' })
      expect(await under.store.get(owned)).toMatchObject({
        kv: storedKv(named('artefact-1'), 1),
        kvStatus: 'offload_failed',
      })
    })

    test('a note does not reach an ended session', async () => {
      const under = await make()
      await createActive(under)
      await under.store.remove(owned)
      await under.store.setKvStatus({ key: session, status: 'too_short' })

      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'deleted' })
    })

    test('a dropped artefact leaves the session and goes at once', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await under.store.dropKv({ key: session, artefactId: named('artefact-1'), reason: 'damaged' })

      expect(await under.store.get(owned)).toMatchObject({ turns: 1, kv: undefined, kvStatus: 'damaged' })
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-1')}`]: payloadOf(named('artefact-1')) })
    })

    test('only the artefact that the session still has is dropped', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await storeKv(under, named('artefact-2'), 2)
      await under.store.dropKv({ key: session, artefactId: named('artefact-1'), reason: 'damaged' })

      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-2'), 2), kvStatus: undefined })
      expect(await claimAll(under)).toEqual({})
    })

    test('after a drop the artefact of any turn is welcome', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-5'), 5)
      await under.store.dropKv({ key: session, artefactId: named('artefact-5'), reason: 'damaged' })

      expect(await storeKv(under, named('artefact-2'), 2)).toBe(true)
    })

    test('of overlapping turns the artefact of the last completed one stays, however the offloads end', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('a'))
      await under.store.begin(aTurn('b'))
      await announceFor(under, named('artefact-a'))
      await announceFor(under, named('artefact-b'))
      await under.store.complete(completed('b'))
      await under.store.complete(completed('a'))
      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-a'), 3) })).toBe(true)
      expect(await under.store.commitKv({ key: session, kv: storedKv(named('artefact-b'), 2) })).toBe(false)

      expect(await under.store.get(owned)).toMatchObject({ turns: 3, kv: { artefactId: named('artefact-a') } })
      expect(await claimAll(under)).toEqual({ [`a:${named('artefact-b')}`]: payloadOf(named('artefact-b')) })
    })
  })
}
