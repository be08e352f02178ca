import { describe, expect, test } from '@jest/globals'
import {
  alice,
  announceFor,
  artefactNames,
  aTurn,
  claimAll,
  claimOne,
  completed,
  createActive,
  drain,
  hours,
  newSession,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
  storedKv,
  storeKv,
} from './store-under-test.ts'

export const describeRemovalQueue = (make: () => Promise<StoreUnderTest>): void => {
  describe.each(artefactNames)('the removal queue, with artefacts $name', ({ named }) => {
    test('tells everything about a removal', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await announceFor(under, named('artefact-2'), { graceMs: 0 })
      await under.store.remove(owned)
      const claimed = await under.store.claim({ limit: 10, leaseMs: 60_000 })

      expect([...claimed].sort((a, b) => a.id.localeCompare(b.id))).toEqual([
        {
          id: `a:${named('artefact-2')}`,
          session,
          kind: 'artefact',
          payload: storedKv(named('artefact-2'), 0).payload,
          attempt: 1,
          claim: expect.any(String),
        },
        {
          id: `s:${session}`,
          session,
          kind: 'session',
          payload: storedKv(named('artefact-1'), 0).payload,
          attempt: 1,
          claim: expect.any(String),
        },
      ])
    })

    test('hands out at most as many as are asked for, the longest due first', async () => {
      const under = await make()
      for (const name of ['a', 'b', 'c']) {
        await announceFor(under, name, { graceMs: 0 })
        await under.advance(seconds(1))
      }

      expect((await under.store.claim({ limit: 2, leaseMs: 60_000 })).map(({ id }) => id)).toEqual(['a:a', 'a:b'])
      expect((await under.store.claim({ limit: 2, leaseMs: 60_000 })).map(({ id }) => id)).toEqual(['a:c'])
      expect(await under.store.claim({ limit: 2, leaseMs: 60_000 })).toEqual([])
    })

    test('hands a removal out again when its claim runs out, and counts the attempts', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      const attempts: number[] = []
      for (let round = 0; round < 3; round++) {
        const [claimed] = await under.store.claim({ limit: 10, leaseMs: 30_000 })
        attempts.push(claimed?.attempt ?? 0)
        await under.advance(seconds(29))
        expect(await under.store.claim({ limit: 10, leaseMs: 30_000 })).toEqual([])
        await under.advance(seconds(1))
      }

      expect(attempts).toEqual([1, 2, 3])
    })

    test('forgets what is settled', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      const claimed = await under.store.claim({ limit: 10, leaseMs: 30_000 })
      await under.store.ack(claimed)
      await under.store.ack(claimed)
      await under.store.ack([{ id: 'a:unknown', claim: 'unknown' }])
      await under.advance(seconds(60))

      expect(await claimAll(under)).toEqual({})
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('settles several at once, but for those that were queued again meanwhile', async () => {
      const under = await make()
      const others = ['one', 'two'].map(sessionKey)
      for (const key of [session, ...others]) {
        await createActive(under, { key })
        await storeKv(under, named(`artefact-${key}`), 1, key)
        await under.store.remove({ key, tenant: alice })
      }
      const claimed = await under.store.claim({ limit: 10, leaseMs: 30_000 })
      await under.store.abandon({ key: session, turnId: 'turn-2' })
      await under.store.ack([{ id: 'a:unknown', claim: 'unknown' }, ...claimed])

      expect(claimed).toHaveLength(3)
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: `{"file":"${named(`artefact-${session}`)}"}` })
      expect(await under.store.knownArtefacts(others.map((key) => named(`artefact-${key}`)))).toEqual(new Set())
    })

    test('leaves a removal to whoever claimed it last', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      const late = await claimOne(under)
      await under.advance(seconds(30))
      const current = await claimOne(under)
      await under.store.retryLater(late, 0)
      await under.store.ack([late])

      expect(await claimAll(under)).toEqual({})
      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 0 })
      await under.store.ack([current])
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a removal from before its session lived again does not stand for the one after', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      const before = await claimOne(under)
      await under.store.complete(completed('turn-2'))
      await under.store.remove(owned)
      await under.store.retryLater(before, seconds(60))
      await under.store.ack([before])

      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
    })

    test('an empty ack changes nothing', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      await under.store.ack([])

      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 0 })
    })

    test('brings a postponed removal after its delay', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      await under.store.retryLater(await claimOne(under), 300_000)
      await under.advance(seconds(299))
      expect(await under.store.claim({ limit: 10, leaseMs: 30_000 })).toEqual([])
      await under.advance(seconds(1))

      expect(await under.store.claim({ limit: 10, leaseMs: 30_000 })).toMatchObject([{ attempt: 2 }])
    })

    test('a removal can be postponed to sooner than its claim runs out', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      await under.store.retryLater(await claimOne(under, 300_000), 1000)
      await under.advance(seconds(1))

      expect(Object.keys(await claimAll(under))).toEqual([`a:${named('artefact-1')}`])
    })

    test('postponing what is not there queues nothing', async () => {
      const under = await make()
      await under.store.retryLater({ id: 'a:unknown', claim: 'unknown' }, 0)

      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('an artefact announced again is due by the later word', async () => {
      const under = await make()
      await announceFor(under, named('artefact-1'), { graceMs: 10_000 })
      await announceFor(under, named('artefact-1'), { graceMs: 60_000 })
      await under.advance(seconds(30))
      expect(await claimAll(under)).toEqual({})
      await under.advance(seconds(30))

      expect(Object.keys(await claimAll(under))).toEqual([`a:${named('artefact-1')}`])
    })

    test('a session that ends with another artefact, before its first removal is done, has both removed', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await under.store.remove(owned)
      await under.advance(seconds(86_400))
      await createActive(under, newSession())
      await storeKv(under, named('artefact-2'), 1)
      await under.store.remove(owned)

      expect(await claimAll(under)).toEqual({
        [`s:${session}`]: storedKv(named('artefact-2'), 0).payload,
        [`a:${named('artefact-1')}`]: storedKv(named('artefact-1'), 0).payload,
      })
    })

    test('knows the artefacts of sessions and of the queue, and no others', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'replaced', 1)
      await storeKv(under, 'current', 2)
      await announceFor(under, 'announced')
      await createActive(under, { key: sessionKey('ended') })
      await storeKv(under, 'ended', 1, sessionKey('ended'))
      await under.store.remove({ key: sessionKey('ended'), tenant: alice })
      const asked = ['replaced', 'current', 'announced', 'ended', 'orphan']

      expect(await under.store.knownArtefacts(asked)).toEqual(new Set(['replaced', 'current', 'announced', 'ended']))
      await under.advance(seconds(60))
      await drain(under)
      expect(await under.store.knownArtefacts(asked)).toEqual(new Set(['current']))
      expect(await under.store.knownArtefacts([])).toEqual(new Set())
    })

    test('knows thousands of artefacts at once', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'current', 1)
      const asked = Array.from({ length: 2500 }, (_, index) => `orphan-${index}`)

      expect(await under.store.knownArtefacts([...asked, 'current'])).toEqual(new Set(['current']))
    })

    test('a dropped artefact is known until it is settled', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await under.store.dropKv({ key: session, artefactId: named('artefact-1'), reason: 'damaged' })

      expect(await under.store.knownArtefacts([named('artefact-1')])).toEqual(new Set([named('artefact-1')]))
      await drain(under)
      expect(await under.store.knownArtefacts([named('artefact-1')])).toEqual(new Set())
    })

    test('counts what waits and what lives', async () => {
      const under = await make()
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
      await createActive(under)
      await createActive(under, { key: sessionKey('other') })
      await announceFor(under, named('artefact-1'))

      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 2 })
      await under.store.remove(owned)
      expect(await under.store.counts()).toEqual({ removals: 2, sessions: 1 })
    })

    test('a settled artefact does not take a session with it', async () => {
      const under = await make()
      await createActive(under)
      await announceFor(under, named('artefact-1'), { graceMs: 0 })
      const claimed = await claimOne(under)
      await under.store.ack([claimed])
      await storeKv(under, named('artefact-1'), 1)
      await under.store.ack([claimed])

      expect(await under.store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-1'), 1) })
    })
  })
}
