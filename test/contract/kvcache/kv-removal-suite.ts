import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvConnector } from '../../../src/kvcache/kv-connector.ts'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import {
  anySignal,
  type KvTestBed,
  newPrompt,
  newSession,
  serveTurn,
  type TestPod,
  type TestSession,
  turnOf,
} from './kv-test-bed.ts'

const timeoutMs = 60_000

/** How every KvConnector has to remove KV, and find what nobody remembers. */
export const describeKvRemoval = (name: string, make: () => Promise<KvTestBed>): void => {
  describe(`KvConnector: ${name}, removal`, () => {
    let bed: KvTestBed
    let connector: KvConnector
    let first: TestPod
    let second: TestPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      connector = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(() => bed.close(), timeoutMs)

    const serve = (pod: TestPod, kv?: StoredKv, text = prompt) =>
      serveTurn(connector, { session, pod, prompt: text, kv })
    const attach = (pod: TestPod, kv?: StoredKv) => connector.attach(turnOf(session, pod), kv, anySignal())
    /** A session with one turn behind it, on the first pod. */
    const begin = async (): Promise<StoredKv> => {
      const { kv } = await serve(first)
      if (kv === undefined) throw new Error('the first turn stored nothing')
      return kv
    }
    const removeSession = (kv: StoredKv | undefined) =>
      connector.remove({ kind: 'session', session: session.key, payload: kv?.payload }, anySignal())
    const longer = (): string => `${prompt} And one more question.`

    describe('remove', () => {
      test('takes a session out of the store and out of every pod', async () => {
        const kv = await begin()
        const other = await serve(second, kv, longer())
        await connector.remove({ kind: 'artefact', session: session.key, payload: kv.payload }, anySignal())
        expect(await bed.artefacts()).toEqual([other.kv?.artefactId])
        expect(await removeSession(other.kv)).toEqual({ kind: 'removed' })
        expect(await bed.artefacts()).toEqual([])
        expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
      })

      test('can be repeated', async () => {
        const kv = await begin()
        expect([await removeSession(kv), await removeSession(kv)]).toEqual([{ kind: 'removed' }, { kind: 'removed' }])
      })

      test('of an artefact leaves the session in its pod', async () => {
        const kv = await begin()
        await connector.remove({ kind: 'artefact', session: session.key, payload: kv.payload }, anySignal())
        expect(await bed.artefacts()).toEqual([])
        expect((await attach(first)).presence).toMatchObject({ kind: 'resident', tokens: kv.tokens })
      })

      test('leaves other sessions alone', async () => {
        const kv = await begin()
        const stranger = await serveTurn(connector, { session: newSession(), pod: first, prompt: newPrompt() })
        await removeSession(kv)
        expect(await bed.artefacts()).toEqual([stranger.kv?.artefactId])
        expect(await second.probe(prompt)).toBe(0)
      })

      test('waits for a turn that runs', async () => {
        const kv = await begin()
        const turn = turnOf(session, first)
        const { claim } = await connector.attach(turn, kv, anySignal())
        expect(await removeSession(kv)).toMatchObject({ kind: 'busy', reason: expect.any(String) })
        await connector.detach(turn, claim, anySignal())
        expect(await removeSession(kv)).toEqual({ kind: 'removed' })
        expect(await first.probe(prompt)).toBe(0)
      })

      test('of a session that was never seen is done', async () => {
        expect(await removeSession(undefined)).toEqual({ kind: 'removed' })
      })

      test('forgets pods that are gone', async () => {
        const kv = await begin()
        const survivor = bed.connect({ pods: [second.address] })
        const removal = { kind: 'session', session: session.key, payload: kv.payload } as const
        expect(await survivor.remove(removal, anySignal())).toEqual({ kind: 'removed' })
      })
    })

    describe('reconcile', () => {
      const reconcile = (known: readonly string[]) =>
        connector.reconcile(async (ids) => new Set(ids.filter((id) => known.includes(id))), anySignal())

      test('keeps what is known and removes what nobody knows', async () => {
        await reconcile([])
        const kv = await begin()
        const orphan = await serveTurn(connector, { session: newSession(), pod: first, prompt: newPrompt() })
        expect(await reconcile([kv.artefactId])).toBe(1)
        expect(await bed.artefacts()).toEqual([kv.artefactId])
        expect(orphan.kv?.artefactId).not.toBe(kv.artefactId)
        expect((await attach(first, kv)).presence).toMatchObject({ kind: 'resident' })
      })

      test('after the shared state was lost, leaves nothing of a forgotten session in any pod', async () => {
        const kv = await begin()
        await serve(second, kv, longer())
        bed.loseState()
        connector = bed.connect()
        expect(await reconcile([])).toBeGreaterThanOrEqual(3)
        expect(await bed.artefacts()).toEqual([])
        expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
        expect(await reconcile([])).toBe(0)
      })
    })
  })
}
