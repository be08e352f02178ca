import { describe, expect, test } from '@jest/globals'
import {
  artefactNames,
  aTurn,
  completed,
  createActive,
  hours,
  mallory,
  newSession,
  type StoreUnderTest,
  session,
  sessionKey,
  storeKv,
} from './store-under-test.ts'

const deleted = sessionKey('deleted')
const expired = sessionKey('expired')
const other = sessionKey('other')

/** Two live sessions, one that has expired and one that was deleted. */
const makeSessions = async (make: () => Promise<StoreUnderTest>): Promise<StoreUnderTest> => {
  const under = await make()
  await createActive(under, { key: expired, ttlSeconds: 10 })
  await under.advance(hours(1))
  await createActive(under)
  await createActive(under, { key: other })
  await createActive(under, { key: deleted })
  await under.store.remove({ key: deleted, tenant: newSession().tenant })
  return under
}

/** Adapters may send turns together: what comes of one must never be another one's. */
export const describeTurnsAtOnce = (make: () => Promise<StoreUnderTest>): void => {
  describe('turns at once', () => {
    test('each meets its own session', async () => {
      const { store } = await makeSessions(make)
      const wanted = [
        { begin: aTurn('a'), outcome: { kind: 'active', record: { key: session } } },
        { begin: { ...aTurn('b'), key: sessionKey('unknown') }, outcome: { kind: 'unknown' } },
        { begin: { ...aTurn('c'), key: other }, outcome: { kind: 'active', record: { key: other } } },
        { begin: { ...aTurn('d'), key: deleted }, outcome: { kind: 'deleted' } },
        { begin: { ...aTurn('e'), tenant: mallory }, outcome: { kind: 'unknown' } },
        { begin: { ...aTurn('f'), key: expired }, outcome: { kind: 'expired', ttlSeconds: 10 } },
      ]
      const many = Array.from({ length: 5 }, () => wanted).flat()

      const outcomes = await Promise.all(many.map(({ begin }) => store.begin(begin)))

      expect(outcomes).toMatchObject(many.map(({ outcome }) => outcome))
    })

    test('each counts for its own session, once', async () => {
      const { store } = await makeSessions(make)
      const turns = Array.from({ length: 20 }, (_, index) => ({
        turnId: `turn-${index}x`,
        key: index % 3 === 0 ? other : session,
        usage: { prompt: index, output: 1, cached: 0 },
      }))
      await Promise.all(turns.map(({ turnId, key }) => store.begin({ ...aTurn(turnId), key })))

      const twice = [...turns, ...turns]
      const outcomes = await Promise.all(
        twice.map(({ turnId, key, usage }) => store.complete({ ...completed(turnId, { usage }), key })),
      )

      expect(outcomes).toMatchObject(twice.map(({ key }) => ({ kind: 'completed', record: { key } })))
      const sumOf = (key: string) =>
        turns.filter((turn) => turn.key === key).reduce((sum, t) => sum + t.usage.prompt, 0)
      const { tenant } = newSession()
      expect(await store.get({ key: session, tenant })).toMatchObject({
        turns: 1 + 13,
        tokens: { prompt: 1000 + sumOf(session), output: 100 + 13 },
      })
      expect(await store.get({ key: other, tenant })).toMatchObject({
        turns: 1 + 7,
        tokens: { prompt: 1000 + sumOf(other), output: 100 + 7 },
      })
    })

    test('turns that begin and end at once go in their order', async () => {
      const { store } = await makeSessions(make)

      const [begun, ended, again] = await Promise.all([
        store.begin(aTurn('first')),
        store.complete(completed('first', { pod: '10.0.0.3:8000' })),
        store.begin(aTurn('second')),
      ])

      expect(begun).toMatchObject({ kind: 'active', record: { pod: '10.0.0.2:8000' } })
      expect(ended).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(again).toMatchObject({ kind: 'active', record: { pod: '10.0.0.3:8000' } })
    })

    test.each(artefactNames)('each is told of its own stored KV, $name', async ({ named }) => {
      const under = await makeSessions(make)
      await storeKv(under, named('one'), 1)
      await storeKv(under, 'two', 1, other)

      const outcomes = await Promise.all([
        under.store.begin(aTurn('a')),
        under.store.begin({ ...aTurn('b'), key: other }),
        under.store.begin(aTurn('c')),
      ])

      expect(outcomes).toMatchObject(
        [named('one'), 'two', named('one')].map((artefactId) => ({
          kind: 'active',
          record: { kv: { artefactId, payload: `{"file":"${artefactId}"}`, turn: 1 } },
        })),
      )
    })
  })
}
