import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseStoredPrefix } from '../../../src/kvcache/lmcache/stored-prefix.ts'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  storedKv,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheFleet, startLmcacheFleet } from '../../contract/kvcache/lmcache-bed.ts'
import type { KvConnector, OffloadRequest } from '../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../support/eventually.ts'

const sessionCount = 4

/** One step; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...Array<'turn'>(8).fill('turn'), 'remove' as const, 'remove' as const, 'forget' as const),
  session: fc.nat(sessionCount - 1),
  pod: fc.nat(1),
  end: fc.constantFrom('offload', 'offload', 'offload', 'detach'),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** A session of a tenant whose sessions all begin alike. */
interface Life {
  session: TestSession
  turns: number
  kv: StoredKv | undefined
}

describe('sessions of one tenant that share a beginning', () => {
  let fleet: LmcacheFleet
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation: 'tenant' })
  })
  afterAll(() => fleet.close())

  test('any sequence of turns and removals keeps the chunks of living sessions, and nothing of the others', async () => {
    const lives = fc.asyncProperty(fc.array(anyStep, { minLength: 12, maxLength: 24 }), async (steps) => {
      const bed = await fleet.bed()
      const world = startWorld(bed)
      for (const step of steps) await world.take(step)
      expect(world.surprises).toEqual([])
      expect(await world.end()).toEqual({ lost: [], chunks: [], artefacts: [] })
      await bed.close()
    })
    await fc.assert(lives, { numRuns: 5, endOnFailure: true })
  }, 180_000)
})

const startWorld = (bed: LmcacheBed) => {
  const connector: KvConnector = bed.connect({ settleMs: 500 })
  const opening = newPrompt()
  const newLife = (): Life => ({ session: newSession(), turns: 0, kv: undefined })
  const lives = Array.from({ length: sessionCount }, newLife)
  const surprises: string[] = []

  const takeTurn = async (life: Life, pod: number, end: 'offload' | 'detach'): Promise<void> => {
    const testPod = bed.pods[pod] ?? bed.pods[0]
    life.turns += 1
    const prompt = `${opening} ${`${life.session.id} goes on and on and on.`.repeat(life.turns)}`
    const turn = turnOf(life.session, testPod)
    const { claim, fields, presence } = await connector.attach(turn, life.kv, { signal: anySignal() })
    if (life.kv !== undefined && !['on-demand', 'resident'].includes(presence.kind)) surprises.push(presence.kind)
    const { promptTokens, outputTokens, cachedTokens } = await testPod.run({ prompt, fields })
    if (cachedTokens < (life.kv?.tokens ?? 0)) surprises.push('the engine did not use what lay there')
    if (end === 'detach') {
      // What an engine still writes has no name yet.
      await eventually(async () => (await testPod.probe(prompt)) === Math.floor(prompt.length / 64) * 64)
      return connector.detach(turn, claim, anySignal())
    }
    const { outcome, announced } = await offload({
      turn,
      claim,
      totalTokens: promptTokens + outputTokens,
      promptTokens,
    })
    if (outcome.kind === 'none') surprises.push(outcome.reason)
    // What was announced and is not the session's KV now is removed, as the gateway does.
    if (outcome.kind !== 'stored' && announced !== undefined) await remove(life.session, announced, 'artefact')
    await keep(life, storedKv(outcome))
  }

  const offload = async (request: Omit<OffloadRequest, 'announce' | 'signal'>) => {
    let announced: string | undefined
    const announce = async ({ payload }: { readonly payload: string }): Promise<void> => {
      announced = payload
    }
    const outcome = await connector.offload({ ...request, announce, signal: anySignal() })
    return { outcome, announced }
  }

  const keep = async (life: Life, kv: StoredKv | undefined): Promise<void> => {
    if (kv === undefined) return
    const former = life.kv
    life.kv = kv
    if (former !== undefined) await remove(life.session, former.payload, 'artefact')
  }

  const remove = (session: TestSession, payload: string, kind: 'artefact' | 'session'): Promise<true> =>
    eventually(async () => {
      const removal = { kind, session: session.key, payload } as const
      return (await connector.remove(removal, anySignal())).kind === 'removed'
    })

  const act = (index: number, action: (life: Life) => Promise<void>): Promise<void> => action(lives[index] ?? newLife())

  return {
    surprises,
    take: async (step: Step): Promise<void> => {
      switch (step.kind) {
        case 'turn':
          return act(step.session, (life) => takeTurn(life, step.pod, step.end))
        case 'remove':
          return act(step.session, async (life) => {
            await remove(life.session, life.kv?.payload ?? '', 'session')
            Object.assign(life, { session: newSession(), turns: 0, kv: undefined })
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
        .flatMap(({ kv }) => (kv === undefined ? [] : (parseStoredPrefix(kv.payload)?.chunks ?? ['unreadable'])))
        .filter((chunk) => !present.some((name) => name.includes(chunk)))
      for (const life of lives) if (life.kv !== undefined) await remove(life.session, life.kv.payload, 'session')
      return { lost, chunks: bed.fleet.chunks(), artefacts: await bed.artefacts() }
    },
  }
}
