import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import {
  anySignal,
  type KvTestBed,
  type KvTraits,
  newSession,
  serveTurn,
  slotTraits,
  type TestPod,
  type TestSession,
  turnOf,
} from './kv-test-bed.ts'
import type { KvConnector } from './old-kv-port.ts'

const timeoutMs = 60_000

/** The contract of KvConnector for removal and for the sweep of orphans. */
export const describeKvRemoval = (
  name: string,
  make: () => Promise<KvTestBed>,
  traits: KvTraits = slotTraits,
): void => {
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
      prompt = traits.newPrompt()
    }, timeoutMs)
    afterEach(() => bed.close(), timeoutMs)

    const serve = (pod: TestPod, kv?: StoredKv, text = prompt) =>
      serveTurn(connector, { session, pod, prompt: text, kv })
    const attach = (pod: TestPod, kv?: StoredKv) => connector.attach(turnOf(session, pod), kv, { signal: anySignal() })
    /** Serves the first turn on the first pod. */
    const begin = async (): Promise<StoredKv> => {
      const { kv } = await serve(first)
      if (kv === undefined) throw new Error('the first turn stored nothing')
      return kv
    }
    const removeSession = (kv: StoredKv | undefined) =>
      connector.remove({ kind: 'session', session: session.key, payload: kv?.payload }, anySignal())
    const longer = (): string => `${prompt}${traits.more}`

    describe('remove', () => {
      test('removes a session from the store and from every pod', async () => {
        const kv = await begin()
        const other = await serve(second, kv, longer())
        if (traits.grows) {
          await connector.remove({ kind: 'artefact', session: session.key, payload: kv.payload }, anySignal())
        }
        expect(await bed.artefacts()).toEqual([other.kv?.artefactId])
        expect(await removeSession(other.kv)).toEqual({ kind: 'removed' })
        expect(await bed.artefacts()).toEqual([])
        expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
      })

      test('can be repeated', async () => {
        const kv = await begin()
        expect([await removeSession(kv), await removeSession(kv)]).toEqual([{ kind: 'removed' }, { kind: 'removed' }])
      })

      test('of an artefact leaves the KV in its pod as the connector can use it', async () => {
        const kv = await begin()
        await connector.remove({ kind: 'artefact', session: session.key, payload: kv.payload }, anySignal())
        expect(await bed.artefacts()).toEqual([])
        expect((await attach(first)).presence).toMatchObject(traits.afterItsArtefact(kv.tokens))
      })

      test('leaves other sessions unchanged', async () => {
        const kv = await begin()
        const stranger = await serveTurn(connector, { session: newSession(), pod: first, prompt: traits.newPrompt() })
        await removeSession(kv)
        expect(await bed.artefacts()).toEqual([stranger.kv?.artefactId])
        expect(await second.probe(prompt)).toBe(0)
      })

      const orNot = { busy: 'waits', removed: 'does not wait' }[traits.removalDuringTurn]
      test(`${orNot} for a running turn, and can be repeated after it`, async () => {
        const kv = await begin()
        const turn = turnOf(session, first)
        const { claim } = await connector.attach(turn, kv, { signal: anySignal() })
        const removed = { busy: { kind: 'busy', reason: expect.any(String) }, removed: { kind: 'removed' } }
        expect(await removeSession(kv)).toEqual(removed[traits.removalDuringTurn])
        await connector.detach(turn, claim, anySignal())
        expect(await removeSession(kv)).toEqual({ kind: 'removed' })
        expect(await first.probe(prompt)).toBe(0)
      })

      test('of an unknown session is done', async () => {
        expect(await removeSession(undefined)).toEqual({ kind: 'removed' })
      })

      test('ignores pods that are no longer configured', async () => {
        const kv = await begin()
        const survivor = bed.connect({ pods: [second.address] })
        const removal = { kind: 'session', session: session.key, payload: kv.payload } as const
        expect(await survivor.remove(removal, anySignal())).toEqual({ kind: 'removed' })
      })
    })

    const reconcile = (known: readonly string[]) =>
      connector.reconcile(async (ids) => new Set(ids.filter((id) => known.includes(id))), anySignal())
    const presenceOn = async (pod: TestPod, kv: StoredKv) => (await attach(pod, kv)).presence

    const orphans = {
      unknown: () =>
        describe('reconcile', () => {
          test('keeps known artefacts and removes unknown ones', async () => {
            await reconcile([])
            const kv = await begin()
            const orphan = await serveTurn(connector, { session: newSession(), pod: first, prompt: traits.newPrompt() })
            expect(await reconcile([kv.artefactId])).toBe(1)
            expect(await bed.artefacts()).toEqual([kv.artefactId])
            expect(orphan.kv?.artefactId).not.toBe(kv.artefactId)
            expect((await attach(first, kv)).presence).toMatchObject({ kind: 'resident' })
          })

          test('after the loss of the shared state, removes a forgotten session from every pod', async () => {
            const kv = await begin()
            await serve(second, kv, longer())
            bed.loseState()
            connector = bed.connect()
            expect(await reconcile([])).toBeGreaterThanOrEqual(3)
            expect(await bed.artefacts()).toEqual([])
            expect(await reconcile([])).toBe(0)
            expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
          })
        }),
      none: () =>
        describe('reconcile', () => {
          test('removes nothing', async () => {
            const kv = await begin()
            expect(await reconcile([])).toBe(0)
            expect(await presenceOn(second, kv)).toEqual(traits.onAnotherPod(kv.tokens))
          })
        }),
    }
    orphans[traits.orphans]()
  })
}
