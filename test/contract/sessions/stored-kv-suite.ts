import { describe, expect, test } from '@jest/globals'
import {
  artefactNames,
  payloadOf,
  type StoreCalls,
  seconds,
  session,
  storedKv,
  testSupersededGraceMs,
} from './store-under-test.ts'

export const describeStoredKv = (calls: StoreCalls): void => {
  const { advance, announce, begin, claim, claimAll, commit, counts, createActive, get, remove, store, storeKv } = calls

  describe.each(artefactNames)('stored KV, with artefacts $name', ({ named }) => {
    const [one, two] = [named('artefact-1'), named('artefact-2')]

    test('a committed artefact belongs to its session and is not removed', async () => {
      await createActive()
      await announce(one, { graceMs: 10_000 })
      expect(await commit(one)).toBe(true)
      await advance(seconds(60))

      expect(await get()).toMatchObject({ kv: storedKv(one), kvStatus: undefined })
      expect(await begin()).toMatchObject({ record: { kv: storedKv(one) } })
      expect(await claimAll()).toEqual({})
      expect(await counts()).toEqual({ removals: 0, sessions: 1 })
    })

    test.each([
      { name: 'empty', payload: '' },
      { name: 'with line feeds', payload: '\nline\nline\n' },
      { name: 'of 100 KB', payload: 'x'.repeat(100_000) },
      { name: 'of many scripts', payload: 'é漢🦙\u0000' },
    ])('a payload $name comes back unchanged, from the session and from its removal', async ({ payload }) => {
      await createActive()
      await announce(one, { payload })
      await commit(one, 1, { payload })
      expect(await get()).toMatchObject({ kv: { payload } })

      await remove()
      expect(await claimAll()).toEqual({ [`s:${session}`]: payload })
    })

    test('the payload of a commit replaces the announced one', async () => {
      await createActive()
      await announce(one, { payload: 'before' })
      await commit(one, 1, { payload: 'after' })

      expect(await get()).toMatchObject({ kv: { payload: 'after' } })
    })

    test('an announced artefact is due after its grace, and cannot be committed once its removal is claimed', async () => {
      await createActive()
      await announce(one, { graceMs: 10_000 })
      await advance(seconds(9))
      expect(await claimAll()).toEqual({})
      await advance(seconds(1))

      expect(await claimAll()).toEqual({ [`a:${one}`]: payloadOf(one) })
      expect(await commit(one)).toBe(false)
      expect(await get()).toMatchObject({ kv: undefined })
      expect(await claimAll()).toEqual({ [`a:${one}`]: payloadOf(one) })
    })

    test.each([
      { name: 'a later turn', turn: 2 },
      { name: 'the same turn', turn: 1 },
    ])('an artefact of $name replaces an earlier one, which is due after a short grace', async ({ turn }) => {
      await createActive()
      await storeKv(one)
      expect(await storeKv(two, turn)).toBe(true)

      expect(await get()).toMatchObject({ kv: storedKv(two, turn) })
      await advance(testSupersededGraceMs - 2000)
      expect(await claimAll()).toEqual({})
      await advance(2000)
      expect(await claimAll()).toEqual({ [`a:${one}`]: payloadOf(one) })
    })

    test('an artefact of an earlier turn that is committed late is refused and due at once', async () => {
      await createActive()
      await announce(one)
      await storeKv(two, 2)
      expect(await commit(one)).toBe(false)

      expect(await get()).toMatchObject({ kv: storedKv(two, 2) })
      expect(await claimAll()).toEqual({ [`a:${one}`]: payloadOf(one) })
    })

    test.each([
      { name: 'was deleted', end: () => remove() },
      { name: 'has expired', end: () => advance(seconds(3600)) },
    ])('a commit to a session that $name is refused, and both artefacts are due', async ({ end }) => {
      await createActive()
      await storeKv(one)
      await announce(two, { graceMs: seconds(7200) })
      await end()

      expect(await commit(two, 2)).toBe(false)
      expect(await claimAll()).toEqual({ [`s:${session}`]: payloadOf(one), [`a:${two}`]: payloadOf(two) })
    })

    test('a note tells why nothing was stored, and keeps the artefact of an earlier turn', async () => {
      await createActive()
      await store().setKvStatus({ key: session, status: 'too_short' })
      expect(await get()).toMatchObject({ kv: undefined, kvStatus: 'too_short' })

      await storeKv(one)
      expect(await get()).toMatchObject({ kv: storedKv(one), kvStatus: undefined })
      await store().setKvStatus({ key: session, status: 'offload_failed' })
      expect(await get()).toMatchObject({ kv: storedKv(one), kvStatus: 'offload_failed' })
    })

    test('dropKv takes the artefact from the session and makes it due at once', async () => {
      await createActive()
      await storeKv(one)
      await store().dropKv({ key: session, artefactId: one, reason: 'damaged' })

      expect(await get()).toMatchObject({ turns: 1, kv: undefined, kvStatus: 'damaged' })
      const [removal] = await claim()
      expect(removal).toMatchObject({ id: `a:${one}`, payload: payloadOf(one) })
      expect(await store().knownArtefacts([one])).toEqual(new Set([one]))
      await store().ack(removal === undefined ? [] : [removal])
      expect(await store().knownArtefacts([one])).toEqual(new Set())
    })
  })
}
