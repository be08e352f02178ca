import { describe, expect, test } from '@jest/globals'
import {
  alice,
  hours,
  mallory,
  newSession,
  retryDigest,
  type StoreCalls,
  session,
  sessionKey,
} from './store-under-test.ts'

export const describeSessions = (calls: StoreCalls): void => {
  const { announce, claimAll, commit, complete, create, createActive, get, nowMs, remove, store } = calls

  describe('sessions', () => {
    test('create stores the session with its fields', async () => {
      const before = await nowMs()
      const outcome = await create()
      const after = await nowMs()
      const record = await get()

      expect({ kind: 'created', record }).toMatchObject(outcome)
      expect(record).toEqual({
        key: session,
        tenant: alice,
        sealedId: newSession().sealedId,
        model: 'llama-3.1-8b',
        createdAtMs: expect.any(Number),
        expiresAtMs: (record?.createdAtMs ?? 0) + hours(1),
        ttlSeconds: 3600,
        turns: 0,
        tokens: { prompt: 0, output: 0, cached: 0 },
        pod: '10.0.0.1:8000',
        kv: undefined,
        kvStatus: undefined,
        branches: [],
      })
      expect(record?.createdAtMs).toBeGreaterThanOrEqual(before)
      expect(record?.createdAtMs).toBeLessThanOrEqual(after)
    })

    test.each([
      { name: 'no pod', change: { pod: undefined } },
      { name: 'a model of 300 characters', change: { model: 'm'.repeat(300) } },
      { name: 'a model of 5,000 characters', change: { model: 'm'.repeat(5000) } },
      { name: 'a model with characters of one to four bytes', change: { model: 'aé漢🦙'.repeat(40) } },
      { name: 'a model with line feeds and NULs', change: { model: 'a\n\0\r\nb' } },
      { name: 'an empty sealed id', change: { sealedId: '' } },
      { name: 'the longest TTL', change: { ttlSeconds: 999_999_999 } },
      { name: 'a key that JavaScript reserves', change: { key: sessionKey('__proto__'), model: 'constructor' } },
    ])('get returns $name unchanged', async ({ change }) => {
      await create(change)

      const { key, sealedId, model, ttlSeconds, pod } = newSession(change)
      expect(await get({ key })).toMatchObject({ key, sealedId, model, ttlSeconds, pod })
    })

    test.each([
      { name: 'empty', payload: '' },
      { name: 'with line feeds', payload: '\nline\nline\n' },
      { name: 'of 100 KB', payload: 'x'.repeat(100_000) },
      { name: 'of many scripts', payload: 'é漢🦙\u0000' },
    ])('a payload $name comes back unchanged, from the session and from its removal', async ({ payload }) => {
      await createActive()
      await announce('artefact', { payload })
      await commit('artefact', 1, { payload })
      expect(await get()).toMatchObject({ kv: { payload } })

      await remove()
      expect(await claimAll()).toEqual({ [`s:${session}`]: payload })
    })

    test('a repeated create of another tenant does not find the session', async () => {
      const retryOf = { digest: retryDigest, bodyDigest: 'body', rememberMs: hours(24), use: 'find-or-record' } as const
      await createActive({ retryOf })

      const again = { key: sessionKey('again-session'), tenant: mallory }
      expect(await create({ ...again, turnId: 'turn-again', retryOf })).toMatchObject({
        kind: 'created',
        record: again,
      })
    })

    test('a retry finds the session of its first try, and none of several turns', async () => {
      const retryOf = { digest: retryDigest, bodyDigest: 'body', rememberMs: hours(24), use: 'record-only' } as const
      const retry = (name: string) =>
        create({
          key: sessionKey(`${name}-session`),
          turnId: name,
          retryOf: { ...retryOf, use: 'find-young-or-record' },
        })
      await createActive({ retryOf })
      expect(await retry('first')).toMatchObject({ kind: 'existing', record: { key: session, turns: 1 } })

      await complete('first')
      const other = { kind: 'created', record: { key: sessionKey('other-session') } }
      expect(await retry('other')).toMatchObject(other)
      expect(await retry('again')).toMatchObject({ ...other, kind: 'existing' })
    })

    test('a store keeps its identity', async () => {
      const identity = await store().identity()
      expect(identity).not.toBe('')
      expect(await store().identity()).toBe(identity)
    })
  })
}
