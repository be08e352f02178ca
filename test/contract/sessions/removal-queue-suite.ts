import { describe, expect, test } from '@jest/globals'
import {
  artefactOf,
  payloadOf,
  type StoreCalls,
  seconds,
  session,
  sessionKey,
  shortId,
  storedKv,
} from './store-under-test.ts'

export const describeRemovalQueue = (calls: StoreCalls): void => {
  const { abandon, advance, announce, claim, claimAll, claimOne, counts, createActive } = calls
  const { get, remove, store, storeKv } = calls

  describe('the removal queue', () => {
    const one = 'artefact-1'
    const unknown = { id: `a:${artefactOf('unknown')}`, session, claim: 'unknown' }

    test('claim returns at most as many as asked for, the longest due first', async () => {
      for (const name of ['a', 'b', 'c']) {
        await announce(name, { graceMs: 0 })
        await advance(seconds(1))
      }

      const pages = [await claim(60_000, 2), await claim(60_000, 2), await claim(60_000, 2)]
      expect(pages.map((page) => page.map(shortId))).toEqual([['a:a', 'a:b'], ['a:c'], []])
    })

    test('an acknowledged removal is gone; an unknown or empty acknowledgement changes nothing', async () => {
      await announce(one, { graceMs: 0 })
      const claimed = await claim(30_000)
      await store().ack([])
      await store().ack([unknown])
      expect(await counts()).toEqual({ removals: 1, sessions: 0 })
      await store().ack(claimed)
      await store().ack(claimed)
      await advance(seconds(60))

      expect(await claimAll()).toEqual({})
      expect(await counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('several are acknowledged at once, except one that was queued again since its claim', async () => {
      const others = ['one', 'two'].map(sessionKey)
      for (const key of [session, ...others]) {
        await createActive({ key })
        await storeKv('artefact', 1, { key })
        await remove({ key })
      }
      const claimed = await claim(30_000)
      await abandon()
      await store().ack([unknown, ...claimed])

      expect(claimed).toHaveLength(3)
      expect(await claimAll()).toEqual({ [`s:${session}`]: payloadOf('artefact') })
      expect(await store().knownArtefacts(others.map((key) => artefactOf('artefact', key)))).toEqual(new Set())
    })

    test('an artefact announced again is due after the later grace', async () => {
      await announce(one, { graceMs: 10_000 })
      await announce(one, { graceMs: 60_000 })
      await advance(seconds(30))
      expect(await claimAll()).toEqual({})
      await advance(seconds(30))

      expect(Object.keys(await claimAll())).toEqual([`a:${one}`])
    })

    test('knownArtefacts finds an artefact among thousands', async () => {
      await createActive()
      await storeKv('current')
      const asked = Array.from({ length: 2500 }, (_, index) => artefactOf(`orphan-${index}`))

      expect(await store().knownArtefacts([...asked, artefactOf('current')])).toEqual(new Set([artefactOf('current')]))
      expect(await store().knownArtefacts([])).toEqual(new Set())
    })

    test('a repeated acknowledgement does not remove an artefact that was stored again', async () => {
      await createActive()
      await announce(one, { graceMs: 0 })
      const claimed = await claimOne()
      await store().ack([claimed])
      await storeKv(one)
      await store().ack([claimed])

      expect(await get()).toMatchObject({ kv: storedKv(one) })
    })
  })
}
