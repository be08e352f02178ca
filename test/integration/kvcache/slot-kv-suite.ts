import { describe, expect, test } from '@jest/globals'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import { anySignal, releaseTurn, removeArtefact, removeSession, turnOf } from '../../contract/kvcache/kv-test-bed.ts'
import { useKvBed } from '../../contract/kvcache/use-kv-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotsTestBed } from './slots-test-bed.ts'

const resident = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'gpu', tokens })
const loaded = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'store', tokens, loadMs: expect.any(Number) })

/** Where a session's KV lies with llamacpp-slots, and what is stored of it: the contract leaves that to connectors. */
export const describeSlotKv = (make: () => Promise<SlotsTestBed>): void => {
  describe('KV in slots and files', () => {
    const kit = useKvBed(make)
    const { serve, prepare, begin } = kit

    test('a turn that continues on its pod uses its slot, and another pod loads the whole conversation', async () => {
      const { stored, usage } = await serve(kit.first)
      const whole = usage.promptTokens + usage.outputTokens
      expect([whole, whole - 1]).toContain(stored?.tokens)
      if (stored === undefined) return
      expect((await serve(kit.first, stored)).prepared.presence).toEqual(resident(stored))
      expect([kit.first.loads(), (await prepare(kit.second, stored)).presence]).toEqual([0, loaded(stored)])
    })

    test('a conversation that returns to a pod is loaded there when it has grown elsewhere', async () => {
      const stored = await begin()
      const { stored: grown = stored } = await serve(kit.second, stored, `${kit.prompt} And one more question.`)
      expect(grown.tokens).toBeGreaterThan(stored.tokens)
      expect((await prepare(kit.first, grown)).presence).toEqual(loaded(grown))
    })

    test('KV of other weights is not loaded, and the sweep drops it', async () => {
      const stored = await begin()
      const cache = kit.bed.connect({ modelVersion: 'new' })
      const turn = turnOf(kit.session, kit.second, { stored })
      const prepared = await cache.prepare(turn, { signal: anySignal() })
      expect([prepared.presence, kit.second.loads()]).toEqual([{ kind: 'miss', reason: 'kv_incompatible' }, 0])
      await releaseTurn(cache, turn, prepared)

      const forgotten: string[] = []
      const forget = async (ids: readonly string[]) => void forgotten.push(...ids)
      await cache.sweep({ known: async (ids) => new Set(ids), forget }, anySignal())
      expect(forgotten).toEqual([stored.artefactId])
    })

    test('removal of an artefact leaves the KV in its slot, which the session still uses', async () => {
      const stored = await begin()
      await removeArtefact(kit.cache, kit.session, stored)
      expect((await prepare(kit.first)).presence).toEqual(resident(stored))
    })

    test('a file that is replaced between the check and the load is missing: the engine has not failed', async () => {
      const stored = await begin()
      const release = kit.second.holdLoads()
      const preparing = prepare(kit.second, stored)
      await eventually(() => kit.second.loads() === 1)
      await removeArtefact(kit.cache, kit.session, stored)
      release()
      expect((await preparing).presence).toEqual({ kind: 'miss', reason: 'kv_missing', gone: true })
    })

    test('a session that starts anew finds nothing of its earlier life', async () => {
      await begin()
      const turn = turnOf(kit.session, kit.first, { createdAtMs: 1 })
      const { presence } = await kit.cache.prepare(turn, { signal: anySignal() })
      expect(presence).toEqual({ kind: 'miss', reason: 'nothing_stored' })
    })

    test('removal of a session waits for its running turn', async () => {
      const turn = turnOf(kit.session, kit.first)
      const prepared = await kit.cache.prepare(turn, { signal: anySignal() })
      expect(await removeSession(kit.cache, kit.session)).toEqual({ kind: 'busy', reason: expect.any(String) })
      await releaseTurn(kit.cache, turn, prepared)
      expect(await removeSession(kit.cache, kit.session)).toEqual({ kind: 'removed' })
    })

    test('a conversation of a few tokens is not stored', async () => {
      const { finished } = await serve(kit.first, undefined, 'Hi')
      expect(finished).toEqual({ kind: 'none', reason: 'too_short' })
      expect(await kit.bed.artefacts()).toEqual([])
    })

    test.each(['changed', 'cut'] as const)('file that was %s is gone for good', async (how) => {
      const stored = await begin()
      await kit.bed.damage(stored.artefactId, how)
      expect((await prepare(kit.second, stored)).presence).toMatchObject({ reason: 'kv_missing', gone: true })
    })
  })
}
