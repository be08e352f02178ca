import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvArtefact, KvPresence } from '../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  finishTurn,
  newSession,
  releaseTurn,
  removeSession,
  storedBy,
  sweep,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const sessionCount = 5
const stepCount = 60
const atATime = 3

/** One conversation. Its marker stands at the front of every prompt and in no other conversation. */
interface Conversation {
  readonly session: TestSession
  readonly marker: string
  turns: number
  stored: KvArtefact | undefined
}

type Step =
  | {
      readonly kind: 'turn'
      readonly conversation: number
      readonly pod: number
      readonly gateway: number
      readonly end: 'finish' | 'release' | 'release-elsewhere'
    }
  | { readonly kind: 'stranger'; readonly pod: number; readonly slot: number | undefined }
  | { readonly kind: 'sweep'; readonly gateway: number }

const which = (count: number): fc.Arbitrary<number> => fc.nat(count - 1)
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('turn' as const),
      conversation: which(sessionCount),
      pod: which(2),
      gateway: which(2),
      end: fc.oneof(
        { weight: 8, arbitrary: fc.constant('finish' as const) },
        { weight: 1, arbitrary: fc.constant('release' as const) },
        { weight: 1, arbitrary: fc.constant('release-elsewhere' as const) },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('stranger' as const),
      pod: which(2),
      slot: fc.constantFrom(0, 1, undefined),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const), gateway: which(2) }) },
)

/** Random concurrent steps on two pods and two gateways: every stored file holds its own session and no other. */
export const describeStorm = (make: () => Promise<SlotsTestBed>): void => {
  describe('random turns, requests without a session and sweeps', () => {
    let bed: SlotsTestBed
    beforeEach(async () => {
      bed = await make()
    })
    afterEach(() => bed.close())

    test('no KV is lost, leaked or mixed up', async () => {
      let hits = 0
      const oneRun = fc.asyncProperty(
        fc.array(anyStep, { minLength: stepCount, maxLength: stepCount }),
        async (steps) => {
          const storm = await startStorm(bed)
          await inParallel(steps, storm.take)
          expect(storm.surprises).toEqual([])
          hits += storm.hits()
          await storm.end()
        },
      )
      await fc.assert(oneRun, { numRuns: 4, endOnFailure: true })
      expect(hits).toBeGreaterThan(0)
    })
  })
}

const inParallel = async (steps: readonly Step[], take: (step: Step) => Promise<void>): Promise<void> => {
  const rest = steps.values()
  const work = async (): Promise<void> => {
    for (const step of rest) await take(step)
  }
  await Promise.all(Array.from({ length: atATime }, work))
}

const surprisesIn = (presence: KvPresence): readonly string[] => {
  if (presence.kind === 'hit') return []
  if (presence.reason === 'kv_missing') return ['an artefact was missing']
  return presence.reason === 'load_failed' ? [`prepare failed: ${String(presence.cause)}`] : []
}

let markers = 0

const startStorm = async (bed: SlotsTestBed) => {
  const gateways = [bed.connect({ orphanGraceMs: 60_000 }), bed.connect({ orphanGraceMs: 60_000 })] as const
  const newMarker = (): string => {
    markers += 1
    return `${String.fromCharCode(0x21 + (markers % 90))}<${markers}>`
  }
  const conversations = Array.from(
    { length: sessionCount },
    (): Conversation => ({ session: newSession(), marker: newMarker(), turns: 0, stored: undefined }),
  )
  const strangers = newMarker()
  const allMarkers = [strangers, ...conversations.map(({ marker }) => marker)]
  const needles = new Map<string, Buffer>()
  for (const marker of allMarkers) {
    const tokens = await bed.pods[0].tokenize(marker)
    needles.set(marker, Buffer.from(Int32Array.from(tokens).buffer))
  }
  const surprises: string[] = []
  let hits = 0
  const gateway = (index: number): KvCache => gateways[index === 0 ? 0 : 1]
  const podOf = (index: number): SlotPod => bed.pods[index === 0 ? 0 : 1]

  /** Slot files hold the ids of their tokens in the clear. */
  const markersIn = async ({ artefactId }: KvArtefact): Promise<readonly string[]> => {
    const content = await readFile(join(bed.kvDirectory, `ctx-${artefactId}.kv`))
    return allMarkers.filter((marker) => content.includes(needles.get(marker) ?? ''))
  }

  const takeTurn = async (step: Extract<Step, { kind: 'turn' }>): Promise<void> => {
    const conversation = conversations[step.conversation]
    if (conversation === undefined) return
    const { session, marker } = conversation
    const cache = gateway(step.gateway)
    const pod = podOf(step.pod)
    conversation.turns += 1
    const prompt = `${marker} ${'A conversation goes on. '.repeat(6 + conversation.turns)}`
    const turn = turnOf(session, pod, { stored: conversation.stored })
    const prepared = await cache.prepare(turn, { signal: anySignal() })
    surprises.push(...surprisesIn(prepared.presence))
    const usage = await pod.run({ prompt, sessionId: session.id, fields: prepared.fields })
    if ('loadMs' in prepared.presence && usage.cachedTokens > 0) hits += 1
    if (step.end === 'release') return releaseTurn(cache, turn, prepared)
    if (step.end === 'release-elsewhere') return releaseTurn(gateway(1 - step.gateway), turn, prepared)
    const stored = storedBy(await finishTurn(cache, turn, { claim: prepared.claim, usage }))
    if (stored === undefined) return
    const found = await markersIn(stored)
    if (found.join() !== marker) surprises.push(`a file of ${marker} holds ${found.join(' and ')}`)
    if (stored.tokens >= (conversation.stored?.tokens ?? 0)) conversation.stored = stored
  }

  const take = async (step: Step): Promise<void> => {
    switch (step.kind) {
      case 'turn':
        return takeTurn(step)
      case 'stranger': {
        const fields = step.slot === undefined ? {} : { id_slot: step.slot }
        await podOf(step.pod).run({ prompt: `${strangers} says something else.`, fields })
        return
      }
      case 'sweep':
        await sweep(gateway(step.gateway))
    }
  }

  return {
    surprises,
    hits: () => hits,
    take,
    /** Removes every conversation, and looks whether anything of it is left in a pod. */
    end: async () => {
      for (const { session, stored } of conversations) {
        await eventually(async () => (await removeSession(gateways[0], session, stored)).kind === 'removed')
      }
      // Turns that got no slot ran in any.
      await sweep(gateways[0])
      for (const { marker } of conversations) {
        const left = await Promise.all(
          bed.pods.map((pod) => pod.probe(`${marker} ${'A conversation goes on. '.repeat(6)}`)),
        )
        expect([marker, left]).toEqual([marker, [0, 0]])
      }
    },
  }
}
