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

// Order, limits, deadlines and leases in general: test/fuzz/admission/resource-queue.test.ts.
test.each<[string, (parts: Queue) => void, readonly string[]]>([
  [
    'work takes all that it needs or nothing',
    ({ ask }) => {
      ask('a')
      ask('b', { S: [1, 2], R: [1, 1] })
      ask('c', { S: [1, 2] })
    },
    ['a admitted', 'b waiting', 'c admitted'],
  ],
  [
    'small work does not overtake large work that waits for the same resource',
    ({ ask, queue }) => {
      ask('a', { R: [1, 4] })
      ask('large', { R: [4, 4] })
      ask('small', { R: [1, 4] })
      queue.release('a')
    },
    ['a admitted', 'large waiting', 'small waiting', 'large admitted'],
  ],
  [
    'work overtakes when it needs another resource, or copies beyond those reserved',
    ({ ask }) => {
      ask('a')
      ask('both', { R: [1, 1], S: [2, 3] })
      ask('other', { T: [1, 1] })
      ask('beyond', { S: [1, 3] })
      ask('reserved', { S: [1, 3] })
    },
    ['a admitted', 'both waiting', 'other admitted', 'beyond admitted', 'reserved waiting'],
  ],
  [
    'a timeout admits the work that it was blocking',
    ({ ask, pass, queue }) => {
      ask('a', { R: [1, 2] })
      ask('large', { R: [2, 2] }, { waitMs: 100 })
      ask('small', { R: [1, 2] })
      pass(queue.nextTickMs() ?? 0)
      queue.tick()
    },
    ['a admitted', 'large waiting', 'small waiting', 'large timeout', 'small admitted'],
  ],
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

test('the last in the order is refused when the queue is full', () => {
  const { ask, log } = setUp(2)
  ask('a')
  for (const id of ['b', 'c', 'd']) ask(id, undefined, { priority: 2 })
  ask('first')
  expect(log).toEqual(['a admitted', 'b waiting', 'c waiting', 'd refused', 'c full', 'first waiting'])
})

test('no work waits when maxWaiting is 0', () => {
  const { ask, log } = setUp(0)
  ask('a')
  ask('b')
  expect(log).toEqual(['a admitted', 'b refused'])
})
