import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { QueuedWork } from '../../../src/admission/queued-work.ts'
import { createTurnQueue, type Settlement } from '../../../src/admission/turn-queue.ts'

const pods = ['a:1', 'b:1', 'c:1'] as const
const slotsPerPod = 2
const roomWaitMs = 5_000

const anySettings = fc.record({ maxWaiting: fc.integer({ min: 1, max: 8 }), askMs: fc.constantFrom(0, 0, 1, 2) })

const anyStep = fc.record({
  kind: fc.constantFrom('ask', 'ask', 'ask', 'end', 'end', 'leave', 'pass'),
  isShort: fc.boolean(),
  tenant: fc.constantFrom('one', 'two', 'three'),
  /** Room that comes free without a report, as that of other gateways. */
  isSilent: fc.boolean(),
  which: fc.nat(),
  passMs: fc.constantFrom(10, 100, 300),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

interface FleetSettings {
  readonly maxWaiting: number
  /** What it takes to ask waiting work: a queue that asks for too long does so at a later tick. */
  readonly askMs: number
}

/** Pods whose long turns leave a slot, and turns that try them as the queue says. */
const createFleet = ({ maxWaiting, askMs }: FleetSettings) => {
  let nowMs = 0
  let turns = 0
  const running = new Map<string, { readonly pod: string; readonly isShort: boolean }>()
  const waiting = new Map<string, QueuedWork>()
  /** How often each turn was settled for good. */
  const ends = new Map<string, number>()
  const tries: (readonly [QueuedWork, Settlement])[] = []

  const queue = createTurnQueue({
    maxWaiting: () => maxWaiting,
    leaseMs: 60_000,
    nowMs: () => nowMs,
    observer: {
      settled: (id, settlement) => {
        const work = waiting.get(id)
        if (work === undefined) throw new Error(`${id} was settled, and did not wait`)
        waiting.delete(id)
        tries.push([work, settlement])
      },
      leaseExpired: () => {},
    },
  })

  const hasSlot = (pod: string, isShort: boolean): boolean => {
    const here = [...running.values()].filter((turn) => turn.pod === pod)
    const long = here.filter((turn) => !turn.isShort).length
    return here.length < slotsPerPod && (isShort || long + 1 < slotsPerPod)
  }

  /** Time passes, and the queue's ticks come when they are due. */
  const pass = (ms: number): void => {
    const untilMs = nowMs + ms
    for (let dueMs = queue.nextTickMs(); dueMs !== undefined && dueMs <= untilMs; dueMs = queue.nextTickMs()) {
      nowMs = Math.max(nowMs + 1, dueMs)
      const startedMs = nowMs
      queue.tick()
      // Asking, and asking those whose time is over twice, for 2 ms each, and one work more.
      expect(nowMs - startedMs).toBeLessThanOrEqual(3 * 2 + 4 * askMs)
      tryAll()
    }
    nowMs = Math.max(nowMs, untilMs)
  }

  const end = (id: string): void => void ends.set(id, (ends.get(id) ?? 0) + 1)

  const answered = (work: QueuedWork, answer: Settlement | 'waiting'): void => {
    if (answer === 'waiting') waiting.set(work.id, work)
    else tries.push([work, answer])
  }

  /** Lets admitted turns try their pods, and returns how many tries that took. */
  const tryAll = (): number => {
    let count = 0
    for (let next = tries.shift(); next !== undefined; next = tries.shift()) {
      const [work, settlement] = next
      count += 1
      if (settlement.kind !== 'admitted' || settlement.pod === undefined || !settlement.hasRoom) end(work.id)
      else if (hasSlot(settlement.pod, work.isShort)) {
        end(work.id)
        running.set(work.id, { pod: settlement.pod, isShort: work.isShort })
        queue.roomAt(settlement.pod)
      } else answered(work, queue.noRoom(work, settlement.pod, work.isShort))
    }
    return count
  }

  const ask = ({ isShort, tenant, which }: Step): void => {
    turns += 1
    const order = [...pods.slice(which % pods.length), ...pods.slice(0, which % pods.length)]
    const work: QueuedWork = {
      id: `turn-${turns}`,
      priority: 1,
      tenant,
      isShort,
      place: (vacancies) => {
        nowMs += askMs
        const pod = order.find((candidate) => vacancies.hasRoom(candidate, () => isShort))
        return pod === undefined ? undefined : { pod, needs: [] }
      },
      arrivedMs: nowMs,
      resourcesWaitMs: 1_000,
      roomWaitMs,
    }
    answered(work, queue.request(work))
  }

  const pick = (ids: Iterable<string>, which: number): string | undefined => {
    const all = [...ids]
    return all[which % Math.max(1, all.length)]
  }

  const take = (step: Step): void => {
    switch (step.kind) {
      case 'ask':
        ask(step)
        return
      case 'end': {
        const id = pick(running.keys(), step.which)
        const turn = running.get(id ?? '')
        if (id === undefined || turn === undefined) return
        running.delete(id)
        if (!step.isSilent) queue.roomAt(turn.pod)
        return
      }
      case 'leave':
        queue.leave(pick(waiting.keys(), step.which) ?? 'nobody')
        return
      default:
        pass(step.passMs)
    }
  }

  return {
    take,
    tryAll,
    pass,
    waiting: () => [...waiting.values()],
    queued: () => queue.waiting(),
    turns: () => turns,
    ends,
    hasSlotFor: ({ isShort }: QueuedWork) => pods.some((pod) => hasSlot(pod, isShort)),
  }
}

test('whatever comes and goes, turns find the room there is, each is settled once, and none tries for ever', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 60 }), anySettings, (steps, settings) => {
      const fleet = createFleet(settings)
      for (const step of steps) {
        fleet.take(step)
        // Each turn tries each pod at most a few times for one event.
        expect(fleet.tryAll()).toBeLessThanOrEqual((fleet.turns() + 1) * pods.length * 2)
        expect(fleet.queued()).toBe(fleet.waiting().length)
        expect(fleet.queued()).toBeLessThanOrEqual(settings.maxWaiting)
      }
      // Room that nobody reported is found by looking again.
      for (let look = 0; look < 12; look += 1) {
        fleet.pass(260)
        fleet.tryAll()
      }
      expect(fleet.waiting().filter((work) => fleet.hasSlotFor(work))).toEqual([])
      // A try that is under way when the time ends goes on without room afterwards.
      for (const ms of [roomWaitMs, 1]) {
        fleet.pass(ms)
        fleet.tryAll()
      }
      expect(fleet.queued()).toBe(0)
      expect([...fleet.ends.values()].filter((count) => count !== 1)).toEqual([])
      expect(fleet.ends.size).toBe(fleet.turns())
    }),
    { numRuns: 300 },
  )
})
