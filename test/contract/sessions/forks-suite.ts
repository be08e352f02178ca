import { describe, expect, test } from '@jest/globals'
import { maxHolders } from '../../../src/sessions/limits.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import {
  alice,
  artefactOf,
  mallory,
  type StoreCalls,
  seconds,
  session,
  sessionKey,
  storedKv,
} from './store-under-test.ts'

/** A fork's key lies together with that of the session. */
const fork = sessionKey('f-session')

/** Forks of sessions. The model-based test covers the lifetime of shared KV. */
export const describeForks = (calls: StoreCalls): void => {
  const { advance, begin, beginNamed, claimAll, complete, createActive, get, list, remove, store, storeKv } = calls
  const forkTo = (key: SessionKey = fork, tenant = alice, ttlSeconds?: number) =>
    store().fork({ from: { key: session, tenant }, session: { key, sealedId: 'sealed', ttlSeconds } })

  describe('forks', () => {
    test('a fork is a session of its own with the KV of the other one, and lies together with it', async () => {
      await createActive()
      await storeKv('kv')
      await advance(seconds(100))
      expect(store().areTogether(fork, session)).toBe(true)
      const outcome = await forkTo()

      const record = await get({ key: fork })
      expect({ kind: 'forked', record }).toMatchObject(outcome)
      expect(record).toMatchObject({
        model: 'llama-3.1-8b',
        sealedId: 'sealed',
        ttlSeconds: 3600,
        turns: 1,
        tokens: { prompt: 0, output: 0, cached: 0 },
        kv: storedKv('kv'),
      })
      expect((record?.expiresAtMs ?? 0) - (record?.createdAtMs ?? 0)).toBe(seconds(3600))
      expect((await list()).records.map(({ key }) => key)).toEqual([fork, session])
      expect((await store().sizes()).kvBytes).toBe(storedKv('kv').bytes)
    })

    test('both go on, and the shared KV is removed once nobody has it', async () => {
      await createActive()
      await storeKv('kv')
      await forkTo()
      await begin('turn-2', { key: fork })
      await complete('turn-2', { key: fork })
      expect(await storeKv('forked', 2, { key: fork })).toBe(true)
      expect(await get()).toMatchObject({ kv: storedKv('kv') })
      await forkTo(sessionKey('g-session'))
      await remove()
      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await store().knownArtefacts([artefactOf('kv')])).toEqual(new Set([artefactOf('kv')]))
      await remove({ key: sessionKey('g-session') })

      expect(Object.keys(await claimAll()).sort()).toEqual(['a:kv', `s:${sessionKey('g-session')}`].sort())
    })

    test('a repeated fork finds the first one; a foreign or taken one is unknown', async () => {
      await createActive()
      await createActive({ key: sessionKey('g-session'), tenant: mallory })
      expect(await forkTo()).toMatchObject({ kind: 'forked' })
      expect(await forkTo()).toMatchObject({ kind: 'forked', record: { key: fork } })
      expect(await forkTo(sessionKey('h-session'), mallory)).toEqual({ kind: 'unknown' })
      expect(await forkTo(sessionKey('g-session'))).toEqual({ kind: 'unknown' })
    })

    test('KV that many sessions have is not shared further', async () => {
      await createActive()
      await storeKv('kv')
      const forks = Array.from({ length: maxHolders }, (_, index) => sessionKey(`f${index}-session`))
      const outcomes = []
      for (const key of forks) outcomes.push(await forkTo(key))

      expect(outcomes.at(-2)).toMatchObject({ kind: 'forked', record: { kv: storedKv('kv') } })
      expect(outcomes.at(-1)).toMatchObject({ kind: 'forked', record: { kv: undefined } })
    })

    test('a new prompt of a name starts with the KV of the prompt before, if it is to', async () => {
      await beginNamed('turn-1', { marks: ['a'] })
      await complete('turn-1')
      await storeKv('kv')
      expect(await beginNamed('turn-2', { marks: ['b'] })).toMatchObject({ kind: 'created', record: { kv: undefined } })
      const forked = await beginNamed('turn-3', { marks: ['c'], forksBranch: true })
      expect(forked).toMatchObject({ kind: 'created', record: { turns: 0, kv: storedKv('kv') } })
    })
  })
}
