import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  type KvTestBed,
  type KvTraits,
  newSession,
  releaseTurn,
  removeArtefact,
  removeSession,
  serveTurn,
  sweep,
  type TestPod,
  type TestSession,
  turnOf,
} from './kv-test-bed.ts'

const timeoutMs = 60_000

/** The contract of KvConnector for removal and for the sweep of orphans. */
export const describeKvRemoval = (name: string, make: () => Promise<KvTestBed>, traits: KvTraits): void => {
  describe(`KvConnector: ${name}, removal`, () => {
    let bed: KvTestBed
    let cache: KvCache
    let first: TestPod
    let second: TestPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      cache = await bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = bed.newPrompt()
    }, timeoutMs)
    afterEach(() => bed.close(), timeoutMs)

    const serve = (pod: TestPod, stored?: KvArtefact, text = prompt) =>
      serveTurn(cache, { session, pod, prompt: text, stored })
    const presenceOn = async (pod: TestPod, stored?: KvArtefact) =>
      (await cache.prepare(turnOf(session, pod, { stored }), { signal: anySignal() })).presence
    /** Serves the first turn on the first pod. */
    const begin = async (): Promise<KvArtefact> => {
      const { stored, finished } = await serve(first)
      if (stored === undefined) throw new Error(`the first turn stored nothing: ${inspect(finished)}`)
      return stored
    }
    const longer = (): string => `${prompt}${bed.more}`

    describe('remove', () => {
      test('removes a session from the store and from every pod', async () => {
        const stored = await begin()
        const next = await serve(second, stored, longer())
        if (next.finished.kind === 'stored') await removeArtefact(cache, session, stored)
        expect(await bed.artefacts()).toEqual([next.stored?.artefactId])
        expect(await removeSession(cache, session, next.stored)).toEqual({ kind: 'removed' })
        expect(await bed.artefacts()).toEqual([])
        expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
      })

      test('can be repeated', async () => {
        const stored = await begin()
        const removed = [await removeSession(cache, session, stored), await removeSession(cache, session, stored)]
        expect(removed).toEqual([{ kind: 'removed' }, { kind: 'removed' }])
      })

      test('of an artefact removes it from the store, and the session is stored again', async () => {
        const stored = await begin()
        expect(await removeArtefact(cache, session, stored)).toEqual({ kind: 'removed' })
        expect(await bed.artefacts()).toEqual([])
        expect((await serve(first)).finished.kind).toBe('stored')
      })

      test('leaves other sessions unchanged', async () => {
        const stored = await begin()
        const stranger = await serveTurn(cache, { session: newSession(), pod: first, prompt: bed.newPrompt() })
        await removeSession(cache, session, stored)
        expect(await bed.artefacts()).toEqual([stranger.stored?.artefactId])
        expect(await second.probe(prompt)).toBe(0)
      })

      test('during a turn succeeds or is busy, and leaves nothing when it is repeated after the turn', async () => {
        const stored = await begin()
        const turn = turnOf(session, first, { stored })
        const prepared = await cache.prepare(turn, { signal: anySignal() })
        expect(['removed', 'busy']).toContain((await removeSession(cache, session, stored)).kind)
        await releaseTurn(cache, turn, prepared)
        expect(await removeSession(cache, session, stored)).toEqual({ kind: 'removed' })
        expect([await bed.artefacts(), await first.probe(prompt)]).toEqual([[], 0])
      })

      test('of an unknown session is done', async () => {
        expect(await removeSession(cache, session)).toEqual({ kind: 'removed' })
      })

      test('ignores pods that are no longer configured', async () => {
        const stored = await begin()
        const survivor = await bed.connect({ pods: [second.address] })
        expect(await removeSession(survivor, session, stored)).toEqual({ kind: 'removed' })
      })
    })

    if (traits.sweeps) {
      describe('sweep', () => {
        test('keeps known artefacts and removes unknown ones', async () => {
          await sweep(cache, [])
          const stored = await begin()
          const orphan = await serveTurn(cache, { session: newSession(), pod: first, prompt: bed.newPrompt() })
          expect(orphan.stored?.artefactId).not.toBe(stored.artefactId)
          expect(await sweep(cache, [stored.artefactId])).toBe(1)
          expect(await bed.artefacts()).toEqual([stored.artefactId])
          expect(await presenceOn(first, stored)).toMatchObject({ kind: 'hit', tokens: stored.tokens })
        })

        test('after the loss of the shared state, removes a forgotten session from every pod', async () => {
          const stored = await begin()
          await serve(second, stored, longer())
          bed.loseState()
          cache = await bed.connect()
          expect(await sweep(cache, [])).toBeGreaterThanOrEqual(2)
          expect(await bed.artefacts()).toEqual([])
          expect(await sweep(cache, [])).toBe(0)
          expect(await Promise.all([first.probe(prompt), second.probe(prompt)])).toEqual([0, 0])
        })
      })
    } else {
      test('a sweep removes nothing', async () => {
        const stored = await begin()
        expect(await sweep(cache, [])).toBe(0)
        expect(await presenceOn(second, stored)).toMatchObject({ kind: 'hit', tokens: stored.tokens })
      })
    }
  })
}
