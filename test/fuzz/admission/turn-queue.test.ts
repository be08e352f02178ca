import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { QueuedWork } from '../../../src/admission/queued-work.ts'
import { createTurnQueue, type Settlement } from '../../../src/admission/turn-queue.ts'

const capacities: Readonly<Record<string, number>> = { R: 4, S: 2, T: 1 }
const leaseMs = 100

const counts = fc
  .record(Object.fromEntries(Object.entries(capacities).map(([pool, max]) => [pool, fc.nat({ max })])))
  .filter((needs) => Object.values(needs).some((count) => count > 0))

/** Which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom('ask', 'ask', 'ask', 'ask', 'release', 'release', 'release', 'leave', 'pass'),
  priority: fc.integer({ min: 1, max: 3 }),
  counts,
  waitMs: fc.integer({ min: 1, max: 60 }),
  which: fc.nat(),
  passMs: fc.nat({ max: 40 }),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

interface Asked extends QueuedWork {
  readonly waitMs: number
  readonly counts: Readonly<Record<string, number>>
  readonly askedMs: number
  readonly order: number
}

/** What the queue has reported, as plain lists. */
class Model {
  readonly #asked = new Map<string, Asked>()
  readonly waiting = new Set<string>()
  readonly running = new Map<string, number>()
  /** Reports that the queue should not have made. */
  readonly faults: string[] = []
  readonly maxWaiting: number
  nowMs = 0

  constructor(maxWaiting: number) {
    this.maxWaiting = maxWaiting
  }

  ask(work: Asked): void {
    this.#asked.set(work.id, work)
    this.waiting.add(work.id)
  }

  get(id: string): Asked {
    const work = this.#asked.get(id)
    if (work === undefined) throw new Error(`${id} was never asked for`)
    return work
  }

  /** By priority, then age. */
  inOrder(): readonly Asked[] {
    return [...this.waiting].map((id) => this.get(id)).sort((a, b) => a.priority - b.priority || a.order - b.order)
  }

  used(pool: string): number {
    return [...this.running.keys()].reduce((sum, id) => sum + (this.get(id).counts[pool] ?? 0), 0)
  }

  /** Whether work fits beside what runs and what work of a higher priority, or of the same and older, waits for. */
  couldRun(work: Asked): boolean {
    const before = this.inOrder().slice(0, this.inOrder().indexOf(work))
    return Object.entries(work.counts)
      .filter(([, count]) => count > 0)
      .every(([pool, count]) => {
        const kept = before.reduce((sum, other) => sum + (other.counts[pool] ?? 0), 0)
        return this.used(pool) + kept + count <= (capacities[pool] ?? 0)
      })
  }

  settle(id: string, kind: 'admitted' | 'timeout' | 'full' | 'left'): void {
    if (!this.waiting.has(id)) this.faults.push(`${id} was settled twice`)
    const { askedMs, waitMs } = this.get(id)
    if (kind === 'timeout' && this.nowMs < askedMs + waitMs) this.faults.push(`${id} timed out early`)
    if (kind === 'full' && (this.waiting.size <= this.maxWaiting || this.inOrder().at(-1)?.id !== id))
      this.faults.push(`${id} was refused out of order`)
    if (kind === 'admitted' && !this.couldRun(this.get(id))) this.faults.push(`${id} overtook other work`)
    this.waiting.delete(id)
    if (kind === 'admitted') this.running.set(id, this.nowMs + leaseMs)
  }

  expire(id: string): void {
    if ((this.running.get(id) ?? Number.POSITIVE_INFINITY) > this.nowMs) this.faults.push(`${id} lost its lease early`)
    this.running.delete(id)
  }
}

/** A queue on a clock that the test sets, and the model that it reports to. */
const createQueue = (maxWaiting: number) => {
  const model = new Model(maxWaiting)
  const queue = createTurnQueue({
    maxWaiting: () => maxWaiting,
    leaseMs,
    nowMs: () => model.nowMs,
    observer: {
      settled: (id, settlement) => model.settle(id, endOf(settlement)),
      leaseExpired: (id) => model.expire(id),
    },
  })
  return { model, queue }
}

const endOf = (settlement: Settlement) => (settlement.kind === 'refused' ? settlement.reason : settlement.kind)

const pass = ({ model, queue }: ReturnType<typeof createQueue>, ms: number): void => {
  model.nowMs += ms
  queue.tick()
}

const take = (bench: ReturnType<typeof createQueue>, one: Step, order: number): void => {
  const { model, queue } = bench
  const pick = (...ids: readonly string[]): string => ids.at(one.which % ids.length) ?? ''
  switch (one.kind) {
    case 'ask': {
      const needs = Object.entries(one.counts)
        .filter(([, count]) => count > 0)
        .map(([pool, count]) => ({ pool, count, capacity: capacities[pool] ?? 0 }))
      const { priority, waitMs } = one
      const work: Asked = {
        id: `w${order}`,
        priority,
        tenant: 'tenant',
        isShort: true,
        place: () => ({ pod: undefined, needs }),
        arrivedMs: model.nowMs,
        resourcesWaitMs: waitMs,
        roomWaitMs: 0,
        waitMs,
        counts: one.counts,
        askedMs: model.nowMs,
        order,
      }
      model.ask(work)
      const answer = queue.request(work)
      if (answer !== 'waiting') model.settle(work.id, endOf(answer))
      return
    }
    // Unknown ids, and those of the other kind, change nothing.
    case 'release': {
      const id = pick(...model.running.keys(), ...model.waiting, 'nobody')
      model.running.delete(id)
      queue.release(id)
      return
    }
    case 'leave': {
      const id = pick(...model.waiting, ...model.running.keys(), 'nobody')
      queue.leave(id)
      if (model.waiting.has(id)) model.faults.push(`${id} left and was kept`)
      return
    }
    default:
      pass(bench, one.passMs)
  }
}

/** What must be true after every step. */
const check = ({ model, queue }: ReturnType<typeof createQueue>): void => {
  expect(model.faults).toEqual([])
  for (const [pool, capacity] of Object.entries(capacities)) {
    expect(queue.inUse(pool)).toBe(model.used(pool))
    expect(queue.inUse(pool)).toBeLessThanOrEqual(capacity)
  }
  expect(queue.waiting()).toBe(model.waiting.size)
  expect(queue.waiting()).toBeLessThanOrEqual(model.maxWaiting)
  expect(model.inOrder().filter((work) => model.couldRun(work))).toEqual([])
  const nextMs = queue.nextTickMs() ?? Number.POSITIVE_INFINITY
  for (const work of model.inOrder()) expect(nextMs).toBeLessThanOrEqual(work.askedMs + work.waitMs)
}

test('the queue admits exactly what fits, by priority and age, and settles and frees everything in time', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 80 }), fc.nat({ max: 4 }), (steps, maxWaiting) => {
      const bench = createQueue(maxWaiting)
      for (const [order, one] of steps.entries()) {
        take(bench, one, order)
        check(bench)
      }
      // The longest wait, and then the longest lease.
      pass(bench, 60)
      expect(bench.queue.waiting()).toBe(0)
      pass(bench, leaseMs)
      check(bench)
      expect(bench.model.running.size).toBe(0)
    }),
    { numRuns: 200 },
  )
})
