import { expect, test } from '@jest/globals'
import { createResourceQueue } from '../../../src/admission/resource-queue.ts'

type Needs = Readonly<Record<string, readonly [count: number, capacity: number]>>

/** A queue, its clock, and what it reported, answers of requests among them. */
const setUp = (maxWaiting = 10) => {
  let nowMs = 0
  const log: string[] = []
  const queue = createResourceQueue({
    maxWaiting,
    leaseMs: 1000,
    nowMs: () => nowMs,
    observer: {
      settled: (id, settlement) =>
        void log.push(`${id} ${settlement.kind === 'refused' ? settlement.reason : settlement.kind}`),
      leaseExpired: (id) => void log.push(`${id} expired`),
    },
  })
  const ask = (id: string, needs: Needs = { R: [1, 1] }, more: { priority?: number; waitMs?: number } = {}): void => {
    const list = Object.entries(needs).map(([pool, [count, capacity]]) => ({ pool, count, capacity }))
    log.push(`${id} ${queue.request({ id, priority: 1, waitMs: 500, needs: list, ...more })}`)
  }
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { queue, log, ask, pass }
}

type Queue = ReturnType<typeof setUp>

// Order, room, limits, deadlines and leases: test/fuzz/admission/resource-queue.test.ts.
test.each<[string, (parts: Queue) => void, readonly string[]]>([
  [
    'a request sees an expired lease without a tick',
    ({ ask, pass }) => {
      ask('lost')
      pass(1000)
      ask('b')
    },
    ['lost admitted', 'lost expired', 'b admitted'],
  ],
  [
    'unknown ids change nothing',
    ({ ask, queue }) => {
      ask('a')
      ask('b')
      for (const id of ['b', 'nobody']) queue.release(id)
      for (const id of ['a', 'nobody']) queue.leave(id)
      ask('c')
    },
    ['a admitted', 'b waiting', 'c waiting'],
  ],
])('%s', (_name, act, expected) => {
  const parts = setUp()
  act(parts)
  expect(parts.log).toEqual(expected)
})

test('no work waits when maxWaiting is 0', () => {
  const { ask, log } = setUp(0)
  ask('a')
  ask('b')
  expect(log).toEqual(['a admitted', 'b refused'])
})
