import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  releaseTurn,
  removeArtefact,
  removeSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const timeoutMs = 60_000

const resident = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'gpu', tokens })
const loaded = ({ tokens }: KvArtefact) => ({ kind: 'hit', tier: 'store', tokens, loadMs: expect.any(Number) })

/** Where a session's KV lies with llamacpp-slots, and what of it is stored: the contract leaves this to each connector. */
export const describeSlotKv = (make: () => Promise<SlotsTestBed>): void => {
  describe('KV in slots and files', () => {
    let bed: SlotsTestBed
    let cache: KvCache
    let first: SlotPod
    let second: SlotPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      cache = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(() => bed.close(), timeoutMs)

    const serve = (pod: SlotPod, stored?: KvArtefact, text = prompt) =>
      serveTurn(cache, { session, pod, prompt: text, stored })
    const prepare = (pod: SlotPod, stored?: KvArtefact) =>
      cache.prepare(turnOf(session, pod, { stored }), { signal: anySignal() })
    const begin = async (): Promise<KvArtefact> => {
      const { stored, finished } = await serve(first)
      if (stored === undefined) throw new Error(`the first turn stored nothing: ${inspect(finished)}`)
      return stored
    }

    test('a turn that continues on its pod uses its slot, and another pod loads the whole conversation', async () => {
      const { stored, usage } = await serve(first)
      const whole = usage.promptTokens + usage.outputTokens
      expect([whole, whole - 1]).toContain(stored?.tokens)
      if (stored === undefined) return
      expect((await serve(first, stored)).prepared.presence).toEqual(resident(stored))
      expect([first.loads(), (await prepare(second, stored)).presence]).toEqual([0, loaded(stored)])
    })

    test('a conversation that returns to a pod is loaded there when it has grown elsewhere', async () => {
      const stored = await begin()
      const { stored: grown = stored } = await serve(second, stored, `${prompt} And one more question.`)
      expect(grown.tokens).toBeGreaterThan(stored.tokens)
      expect((await prepare(first, grown)).presence).toEqual(loaded(grown))
    })

    test('removal of an artefact leaves the KV in its slot, which the session still uses', async () => {
      const stored = await begin()
      await removeArtefact(cache, session, stored)
      expect((await prepare(first)).presence).toEqual(resident(stored))
    })

    test('removal of a session waits for its running turn', async () => {
      const turn = turnOf(session, first)
      const prepared = await cache.prepare(turn, { signal: anySignal() })
      expect(await removeSession(cache, session)).toEqual({ kind: 'busy', reason: expect.any(String) })
      await releaseTurn(cache, turn, prepared)
      expect(await removeSession(cache, session)).toEqual({ kind: 'removed' })
    })

    test('a turn that another pod served is not stored', async () => {
      const turn = turnOf(session, first)
      const { claim } = await cache.prepare(turn, { signal: anySignal() })
      const finished = await finishTurn(cache, { ...turn, pod: second.address }, { claim })
      expect(finished).toEqual({ kind: 'none', reason: 'served_elsewhere' })
    })

    test('a conversation of a few tokens is not stored', async () => {
      const { finished } = await serve(first, undefined, 'Hi')
      expect(finished).toEqual({ kind: 'none', reason: 'too_short' })
      expect(await bed.artefacts()).toEqual([])
    })

    test.each(['changed', 'cut'] as const)('file that was %s is gone for good', async (how) => {
      const stored = await begin()
      await bed.damage(stored.artefactId, how)
      expect((await prepare(second, stored)).presence).toMatchObject({ reason: 'kv_missing', gone: true })
    })
  })
}
