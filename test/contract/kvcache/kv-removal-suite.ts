import { describe, expect, test } from '@jest/globals'
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
  turnOf,
} from './kv-test-bed.ts'
import { useKvBed } from './use-kv-bed.ts'

/** The contract of KvConnector for removal and for the sweep of orphans. */
export const describeKvRemoval = (name: string, make: () => Promise<KvTestBed>, traits: KvTraits): void => {
  describe(`KvConnector: ${name}, removal`, () => {
    const kit = useKvBed(make)
    const { serve, begin } = kit
    const presenceOn = async (pod: TestPod, stored?: KvArtefact) => (await kit.prepare(pod, stored)).presence
    const serveOther = () =>
      serveTurn(kit.cache, { session: newSession(), pod: kit.first, prompt: kit.bed.newPrompt() })
    const longer = (): string => `${kit.prompt}${kit.bed.more}`

    describe('remove', () => {
      test('removes a session from the store and from every pod, and can be repeated', async () => {
        const stored = await begin()
        const next = await serve(kit.second, stored, longer())
        if (next.finished.kind === 'stored') await removeArtefact(kit.cache, kit.session, stored)
        expect(await kit.bed.artefacts()).toEqual([next.stored?.artefactId])
        for (let times = 0; times < 2; times += 1)
          expect(await removeSession(kit.cache, kit.session, next.stored)).toEqual({ kind: 'removed' })
        expect(await kit.bed.artefacts()).toEqual([])
        expect(await Promise.all([kit.first.probe(kit.prompt), kit.second.probe(kit.prompt)])).toEqual([0, 0])
      })

      test('of an artefact removes it from the store, and the session is stored again', async () => {
        const stored = await begin()
        expect(await removeArtefact(kit.cache, kit.session, stored)).toEqual({ kind: 'removed' })
        expect(await kit.bed.artefacts()).toEqual([])
        expect((await serve(kit.first)).finished.kind).toBe('stored')
      })

      test('leaves other sessions unchanged', async () => {
        const stored = await begin()
        const stranger = await serveOther()
        await removeSession(kit.cache, kit.session, stored)
        expect(await kit.bed.artefacts()).toEqual([stranger.stored?.artefactId])
        expect(await kit.second.probe(kit.prompt)).toBe(0)
      })

      test('during a turn succeeds, or is busy where gateways load, and leaves nothing if repeated later', async () => {
        const stored = await begin()
        const turn = turnOf(kit.session, kit.first, { stored })
        const prepared = await kit.cache.prepare(turn, { signal: anySignal() })
        const outcomes = traits.loadedBy === 'engine' ? ['removed'] : ['removed', 'busy']
        expect(outcomes).toContain((await removeSession(kit.cache, kit.session, stored)).kind)
        await releaseTurn(kit.cache, turn, prepared)
        expect(await removeSession(kit.cache, kit.session, stored)).toEqual({ kind: 'removed' })
        expect([await kit.bed.artefacts(), await kit.first.probe(kit.prompt)]).toEqual([[], 0])
      })

      test('of an unknown session is done', async () => {
        expect(await removeSession(kit.cache, kit.session)).toEqual({ kind: 'removed' })
      })

      test('ignores pods that are no longer configured', async () => {
        const stored = await begin()
        const survivor = await kit.bed.connect({ pods: [kit.second.address] })
        expect(await removeSession(survivor, kit.session, stored)).toEqual({ kind: 'removed' })
      })
    })

    if (traits.sweeps) {
      describe('sweep', () => {
        test('keeps known artefacts and removes unknown ones', async () => {
          await sweep(kit.cache, [])
          const stored = await begin()
          const orphan = await serveOther()
          expect(orphan.stored?.artefactId).not.toBe(stored.artefactId)
          await sweep(kit.cache, [stored.artefactId])
          expect(await kit.bed.artefacts()).toEqual([stored.artefactId])
          expect(await presenceOn(kit.first, stored)).toMatchObject({ kind: 'hit', tokens: stored.tokens })
        })

        test('after the loss of the shared state, removes a forgotten session from every pod', async () => {
          const stored = await begin()
          await serve(kit.second, stored, longer())
          kit.bed.loseState()
          kit.cache = await kit.bed.connect()
          await sweep(kit.cache, [])
          expect(await kit.bed.artefacts()).toEqual([])
          expect(await Promise.all([kit.first.probe(kit.prompt), kit.second.probe(kit.prompt)])).toEqual([0, 0])
        })
      })
    } else {
      test('a sweep removes nothing', async () => {
        const stored = await begin()
        await sweep(kit.cache, [])
        expect(await presenceOn(kit.second, stored)).toMatchObject({ kind: 'hit', tokens: stored.tokens })
      })
    }
  })
}
