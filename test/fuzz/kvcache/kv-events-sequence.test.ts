import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createEventSequence } from '../../../src/kvcache/kv-events/event-sequence.ts'

interface Batch {
  readonly engine: number
  readonly sequence: number
}

/** One step; which fields matter depends on the kind. */
interface Step {
  readonly kind: 'publish' | 'answer' | 'reconnect' | 'restart' | 'check-tail' | 'doubt'
  readonly fate: 'arrives' | 'lost' | 'garbled'
  /** How much of the replay arrives, if one was asked for. */
  readonly batches: number
  readonly how: 'complete' | 'failed'
}

const kindly: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...Array<'publish'>(8).fill('publish'),
    ...Array<'answer'>(4).fill('answer'),
    'check-tail' as const,
    'doubt' as const,
  ),
  fate: fc.constantFrom('arrives', 'arrives', 'lost', 'garbled'),
  batches: fc.constant(Number.POSITIVE_INFINITY),
  how: fc.constant('complete'),
})
const harsh: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: kindly },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('answer', 'answer', 'reconnect', 'restart'),
      fate: fc.constant('arrives'),
      batches: fc.nat(3),
      how: fc.constant('failed'),
    }),
  },
)

interface World {
  readonly canReplay: boolean
  readonly maxHeld: number
  /** How many batches the engine's buffer keeps. */
  readonly bufferSteps: number
}

/** Plays an engine and its connection, and keeps the batches applied since everything was forgotten. */
const play = (steps: readonly Step[], world: World) => {
  let applied: Batch[] = []
  let lost = 0
  let asked: number | undefined
  let engine = 0
  let published: Batch[] = []
  const sequence = createEventSequence<Batch>(
    {
      apply: (batch) => applied.push(batch),
      forget: (why) => {
        applied = []
        if (why === 'lost') lost += 1
      },
      ask: (from) => {
        asked = from
      },
    },
    world,
  )
  const answer = (batches: number, how: 'complete' | 'failed'): void => {
    const from = asked
    if (from === undefined) return
    asked = undefined
    const buffer = published.slice(-world.bufferSteps).filter((batch) => batch.sequence >= from)
    for (const batch of buffer.slice(0, batches)) sequence.replayed(batch.sequence, batch)
    sequence.replayEnded(how)
  }
  const connect = (): void => {
    asked = undefined
    sequence.disconnected()
    sequence.connected()
  }
  /** While live: one engine's batches without a gap, up to the last one that arrived. */
  const check = (lastArrived: number): void => {
    const numbers = applied.map((batch) => batch.sequence)
    expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at))
    expect(applied.every((batch) => batch.engine === engine)).toBe(true)
    expect(!sequence.live || lastArrived === -1 || applied.length === 0 || (numbers.at(-1) ?? -1) >= lastArrived).toBe(
      true,
    )
  }

  let lastArrived = -1
  connect()
  for (const step of steps) {
    switch (step.kind) {
      case 'publish': {
        const batch = { engine, sequence: published.length }
        published.push(batch)
        if (step.fate !== 'lost') {
          sequence.received(batch.sequence, step.fate === 'arrives' ? batch : undefined)
          lastArrived = batch.sequence
        }
        break
      }
      case 'answer':
        answer(step.batches, step.how)
        break
      case 'restart':
        engine += 1
        published = []
        lastArrived = -1
        connect()
        break
      case 'reconnect':
        lastArrived = -1
        connect()
        break
      case 'check-tail':
        sequence.checkTail()
        break
      case 'doubt':
        sequence.doubt()
        break
    }
    check(lastArrived)
  }
  return { sequence, answer, applied: () => applied, lost: () => lost, asked: () => asked, published }
}

describe('the order of batches after any sequence of events', () => {
  test('every batch is applied once and none forgotten while the engine can replay it', () => {
    fc.assert(
      fc.property(fc.array(kindly, { maxLength: 80 }), fc.integer({ min: 1, max: 5 }), (steps, maxHeld) => {
        const world = { canReplay: true, maxHeld, bufferSteps: Number.POSITIVE_INFINITY }
        const played = play(steps, world)
        // What was lost last shows only to one who asks.
        for (let round = 0; played.asked() !== undefined && round < 100; round += 1) {
          played.answer(Number.POSITIVE_INFINITY, 'complete')
        }
        played.sequence.checkTail()
        played.answer(Number.POSITIVE_INFINITY, 'complete')
        expect(played.sequence.live).toBe(true)
        expect(played.applied()).toEqual(played.published)
        expect(played.lost()).toBe(0)
      }),
      { numRuns: 500 },
    )
  })

  test('applied batches are one engine’s without a gap, with failed replays, restarts and short buffers', () => {
    fc.assert(
      fc.property(
        fc.array(harsh, { maxLength: 80 }),
        fc.record({
          canReplay: fc.boolean(),
          maxHeld: fc.integer({ min: 1, max: 5 }),
          bufferSteps: fc.integer({ min: 1, max: 6 }),
        }),
        (steps, world) => {
          const played = play(steps, world)
          for (let round = 0; played.asked() !== undefined && round < 100; round += 1) {
            played.answer(Number.POSITIVE_INFINITY, 'complete')
          }
          expect(played.sequence.live).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })
})
