import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createResourceQueue, type QueuedWork, type ResourceQueue } from '../../../src/admission/resource-queue.ts'

const capacities: Readonly<Record<string, number>> = { R: 4, S: 2, T: 1 }
const leaseMs = 100
const maxWaiting = 4

type Step =
  | {
      readonly kind: 'ask'
      readonly priority: number
      readonly counts: Readonly<Record<string, number>>
      readonly waitMs: number
    }
  | { readonly kind: 'release' | 'leave'; readonly which: number }
  | { readonly kind: 'pass'; readonly ms: number }

const counts = fc
  .record(Object.fromEntries(Object.entries(capacities).map(([pool, max]) => [pool, fc.nat({ max })])))
  .filter((needs) => Object.values(needs).some((count) => count > 0))

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      priority: fc.integer({ min: 1, max: 3 }),
      counts,
      waitMs: fc.integer({ min: 1, max: 60 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 40 }) }) },
)

interface Asked extends QueuedWork {
  readonly counts: Readonly<Record<string, number>>
  readonly askedMs: number
  readonly order: number
}

/** The reports of the queue, as plain lists. */
class Model {
  readonly #asked = new Map<string, Asked>()
  readonly waiting = new Set<string>()
  readonly running = new Map<string, number>()
  /** Reports that the queue should not have made. */
  readonly faults: string[] = []
  nowMs = 0

  ask(work: Asked): void {
    this.#asked.set(work.id, work)
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

  /** Whether a piece of work fits beside what runs and what those before it wait for. */
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
    if (kind === 'full' && (this.waiting.size <= maxWaiting || this.inOrder().at(-1)?.id !== id))
      this.faults.push(`${id} was refused out of order`)
    if (kind === 'admitted' && !this.couldRun(this.get(id))) this.faults.push(`${id} overtook reserved work`)
    this.waiting.delete(id)
    if (kind === 'admitted') this.running.set(id, this.nowMs + leaseMs)
  }

  expire(id: string): void {
    if ((this.running.get(id) ?? Number.POSITIVE_INFINITY) > this.nowMs) this.faults.push(`${id} lost its lease early`)
    this.running.delete(id)
  }
}

const run = (steps: readonly Step[], check: (model: Model, queue: ResourceQueue) => void): void => {
  const model = new Model()
  const queue = createResourceQueue({
    maxWaiting,
    leaseMs,
    nowMs: () => model.nowMs,
    observer: {
      settled: (id, settlement) =>
        model.settle(id, settlement.kind === 'refused' ? settlement.reason : settlement.kind),
      leaseExpired: (id) => model.expire(id),
    },
  })
  steps.forEach((one, index) => {
    take(one, index, model, queue)
    expect(model.faults).toEqual([])
    check(model, queue)
  })
}

const take = (one: Step, index: number, model: Model, queue: ResourceQueue): void => {
  switch (one.kind) {
    case 'ask': {
      const needs = Object.entries(one.counts)
        .filter(([, count]) => count > 0)
        .map(([pool, count]) => ({ pool, count, capacity: capacities[pool] ?? 0 }))
      const work: Asked = { ...one, id: `w${index}`, needs, askedMs: model.nowMs, order: index }
      model.ask(work)
      model.waiting.add(work.id)
      const answer = queue.request(work)
      if (answer === 'admitted') model.settle(work.id, 'admitted')
      if (answer === 'refused') model.settle(work.id, 'full')
      return
    }
    case 'release': {
      const id = [...model.running.keys()][one.which % Math.max(1, model.running.size)]
      if (id === undefined) return
      model.running.delete(id)
      queue.release(id)
      return
    }
    case 'leave': {
      const id = [...model.waiting][one.which % Math.max(1, model.waiting.size)]
      if (id === undefined) return
      queue.leave(id)
      if (model.waiting.has(id)) model.faults.push(`${id} left and was kept`)
      return
    }
    case 'pass':
      model.nowMs += one.ms
      queue.tick()
  }
}

const steps = fc.array(step, { maxLength: 80 })

describe('a queue for resources', () => {
  test('never allocates more than the capacity, and reports what is in use', () => {
    fc.assert(
      fc.property(steps, (all) => {
        run(all, (model, queue) => {
          for (const [pool, capacity] of Object.entries(capacities)) {
            expect(queue.inUse(pool)).toBe(model.used(pool))
            expect(queue.inUse(pool)).toBeLessThanOrEqual(capacity)
          }
          expect(queue.waiting()).toBe(model.waiting.size)
          expect(queue.waiting()).toBeLessThanOrEqual(maxWaiting)
        })
      }),
    )
  })

  test('admits work exactly when it fits beside running work and reservations', () => {
    fc.assert(
      fc.property(steps, (all) => {
        run(all, (model) => {
          expect(model.inOrder().filter((work) => model.couldRun(work))).toEqual([])
        })
      }),
    )
  })

  test('admits work with the same needs by priority, then age', () => {
    const alike = steps.map((all) => all.map((one) => (one.kind === 'ask' ? { ...one, counts: { R: 3 } } : one)))
    fc.assert(
      fc.property(alike, (all) => {
        run(all, (model) => {
          // One runs at a time. Work that was there when it started, and goes before it, should have started in its place.
          const [latest] = [...model.running].sort(([, a], [, b]) => b - a)
          const startedMs = (latest?.[1] ?? 0) - leaseMs
          const runner = latest === undefined ? undefined : model.get(latest[0])
          const overtaken = model
            .inOrder()
            .filter((work) => work.askedMs < startedMs && runner !== undefined && goesBefore(work, runner))
          expect(overtaken).toEqual([])
        })
      }),
    )
  })

  test('settles all work by its deadline', () => {
    fc.assert(
      fc.property(steps, (all) => {
        run([...all, { kind: 'pass', ms: 60 }], (model, queue) => {
          const nextMs = queue.nextTickMs() ?? Number.POSITIVE_INFINITY
          for (const work of model.inOrder()) expect(nextMs).toBeLessThanOrEqual(work.askedMs + work.waitMs)
        })
        const last: Step[] = [...all, { kind: 'pass', ms: 60 }]
        let left = 0
        run(last, (model) => {
          left = model.waiting.size
        })
        expect(left).toBe(0)
      }),
    )
  })

  test('frees by lease what is not released', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const held: number[] = []
        run([...all, { kind: 'pass', ms: 60 }, { kind: 'pass', ms: leaseMs }], (_, queue) => {
          held.push(Object.keys(capacities).reduce((sum, pool) => sum + queue.inUse(pool), 0))
        })
        expect(held.at(-1)).toBe(0)
      }),
    )
  })
})

const goesBefore = (a: Asked, b: Asked): boolean =>
  a.priority < b.priority || (a.priority === b.priority && a.order < b.order)
