import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact, KvTurn, RemoveOutcome } from '../../../src/kvcache/kv-connector.ts'
import { parseStoredPrefix } from '../../../src/kvcache/lmcache/stored-prefix.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  payloadOf,
  releaseTurn,
  removeArtefact,
  removeSession,
  storedBy,
  type TestSession,
  type TestUsage,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheFleet, startLmcacheFleet } from '../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../support/eventually.ts'

const sessionCount = 4

/** One step; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...Array<'turn'>(8).fill('turn'), 'remove' as const, 'remove' as const, 'forget' as const),
  session: fc.nat(sessionCount - 1),
  pod: fc.nat(1),
  end: fc.constantFrom('finish', 'finish', 'finish', 'release'),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** A session of a tenant whose sessions all begin alike. */
interface Life {
  session: TestSession
  turns: number
  stored: KvArtefact | undefined
}

describe('sessions of one tenant that share a beginning', () => {
  let fleet: LmcacheFleet
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation: 'tenant' })
  })
  afterAll(() => fleet.close())

  test('any sequence of turns and removals keeps the chunks of living sessions, and nothing of others', async () => {
    const lives = fc.asyncProperty(fc.array(anyStep, { minLength: 12, maxLength: 24 }), async (steps) => {
      const bed = await fleet.bed()
      const world = startWorld(bed)
      for (const step of steps) await world.take(step)
      expect(world.surprises).toEqual([])
      expect(await world.end()).toEqual({ lost: [], chunks: [], artefacts: [] })
      await bed.close()
    })
    await fc.assert(lives, { numRuns: 5, endOnFailure: true })
  })
})

const startWorld = (bed: LmcacheBed) => {
  const cache: KvCache = bed.connect()
  const opening = newPrompt()
  const newLife = (): Life => ({ session: newSession(), turns: 0, stored: undefined })
  const lives = Array.from({ length: sessionCount }, newLife)
  const surprises: string[] = []

  const takeTurn = async (life: Life, pod: number, end: 'finish' | 'release'): Promise<void> => {
    const testPod = bed.pods[pod] ?? bed.pods[0]
    life.turns += 1
    const prompt = `${opening} ${`${life.session.id} goes on and on and on.`.repeat(life.turns)}`
    const turn = turnOf(life.session, testPod, { stored: life.stored })
    const prepared = await cache.prepare(turn, { signal: anySignal() })
    if (life.stored !== undefined && prepared.presence.kind === 'miss') surprises.push(prepared.presence.reason)
    const usage = await testPod.run({ prompt, fields: prepared.fields })
    if (usage.cachedTokens < (life.stored?.tokens ?? 0)) surprises.push('the engine did not use what lay there')
    if (end === 'release') {
      // What an engine still writes has no name yet.
      await eventually(async () => (await testPod.probe(prompt)) === Math.floor(prompt.length / 64) * 64)
      return releaseTurn(cache, turn, prepared)
    }
    const { outcome, announced } = await finish(turn, { claim: prepared.claim, usage })
    if (outcome.kind === 'none') surprises.push(outcome.reason)
    // What was announced and is not the session's KV now is removed, as the gateway does.
    if (outcome.kind !== 'stored' && announced !== undefined) {
      const payload = announced
      await untilRemoved(() => removeArtefact(cache, life.session, { payload }))
    }
    await keep(life, storedBy(outcome))
  }

  const finish = async (turn: KvTurn, end: { readonly claim: string | undefined; readonly usage: TestUsage }) => {
    let announced: string | undefined
    const announce = async ({ payload }: { readonly payload: string }): Promise<void> => {
      announced = payload
    }
    const outcome = await finishTurn(cache, turn, { ...end, announce })
    return { outcome, announced }
  }

  const keep = async (life: Life, stored: KvArtefact | undefined): Promise<void> => {
    if (stored === undefined) return
    const former = life.stored
    life.stored = stored
    if (former !== undefined) await untilRemoved(() => removeArtefact(cache, life.session, former))
  }

  const untilRemoved = (remove: () => Promise<RemoveOutcome>): Promise<true> =>
    eventually(async () => (await remove()).kind === 'removed')

  const act = (index: number, action: (life: Life) => Promise<void>): Promise<void> => action(lives[index] ?? newLife())

  return {
    surprises,
    take: async (step: Step): Promise<void> => {
      switch (step.kind) {
        case 'turn':
          return act(step.session, (life) => takeTurn(life, step.pod, step.end))
        case 'remove':
          return act(step.session, async (life) => {
            await untilRemoved(() => removeSession(cache, life.session, life.stored))
            Object.assign(life, { session: newSession(), turns: 0, stored: undefined })
          })
        case 'forget':
          // An engine that drops blocks of its own cache.
          return bed.fleet.pods[0].engine.evict(bed.fleet.store.keys()[0]?.cache_salt ?? '')
      }
    },
    /** Which living session lacks chunks; then what is left after everything was removed. */
    end: async () => {
      const present = bed.fleet.chunks()
      const lost = lives
        .flatMap(({ stored }) =>
          stored === undefined ? [] : (parseStoredPrefix(payloadOf(stored))?.chunks ?? ['unreadable']),
        )
        .filter((chunk) => !present.some((name) => name.includes(chunk)))
      for (const { session, stored } of lives) await untilRemoved(() => removeSession(cache, session, stored))
      return { lost, chunks: bed.fleet.chunks(), artefacts: await bed.artefacts() }
    },
  }
}
