import { describe, expect, test } from '@jest/globals'
import { createResourceQueue, type QueuedWork } from '../../../src/admission/resource-queue.ts'

/** A queue, its clock, and what it told. */
const createBench = (given: { readonly maxWaiting?: number } = {}) => {
  let nowMs = 0
  const told: string[] = []
  const queue = createResourceQueue({
    maxWaiting: given.maxWaiting ?? 10,
    leaseMs: 1000,
    nowMs: () => nowMs,
    observer: {
      settled: (id, settlement) =>
        void told.push(`${id} ${settlement.kind === 'refused' ? settlement.reason : settlement.kind}`),
      leaseExpired: (id) => void told.push(`${id} lease`),
    },
  })
  return {
    queue,
    told,
    pass: (ms: number) => {
      nowMs += ms
      queue.tick()
    },
    ask: (
      id: string,
      needs: Readonly<Record<string, readonly [count: number, capacity: number]>>,
      more: Partial<QueuedWork> = {},
    ) =>
      queue.request({
        id,
        priority: 1,
        waitMs: 500,
        needs: Object.entries(needs).map(([pool, [count, capacity]]) => ({ pool, count, capacity })),
        ...more,
      }),
  }
}

describe('a queue for resources', () => {
  test('admits at once what is free, and no more', () => {
    const { queue, ask } = createBench()
    expect([ask('a', { R: [1, 2] }), ask('b', { R: [1, 2] }), ask('c', { R: [1, 2] })]).toEqual([
      'admitted',
      'admitted',
      'waiting',
    ])
    expect([queue.inUse('R'), queue.waiting()]).toEqual([2, 1])
  })

  test('gives all that a piece of work needs, or nothing', () => {
    const { queue, ask } = createBench()
    ask('a', { R: [1, 1] })
    expect(ask('b', { S: [1, 1], R: [1, 1] })).toBe('waiting')
    expect(queue.inUse('S')).toBe(0)
  })

  test('admits the oldest of those who wait when something comes free', () => {
    const { queue, ask, told } = createBench()
    for (const id of ['a', 'b', 'c']) ask(id, { R: [1, 1] })
    queue.release('a')
    queue.release('b')
    expect(told).toEqual(['b admitted', 'c admitted'])
  })

  test('goes by priority before age', () => {
    const { queue, ask, told } = createBench()
    ask('a', { R: [1, 1] })
    ask('low-1', { R: [1, 1] }, { priority: 3 })
    ask('mid-1', { R: [1, 1] }, { priority: 2 })
    ask('mid-2', { R: [1, 1] }, { priority: 2 })
    ask('high-1', { R: [1, 1] }, { priority: 1 })
    for (const id of ['a', 'high-1', 'mid-1', 'mid-2']) queue.release(id)
    expect(told).toEqual(['high-1 admitted', 'mid-1 admitted', 'mid-2 admitted', 'low-1 admitted'])
  })

  test('takes priority away from nobody who was admitted', () => {
    const { ask, told } = createBench()
    ask('low', { R: [1, 1] }, { priority: 9 })
    expect(ask('high', { R: [1, 1] })).toBe('waiting')
    expect(told).toEqual([])
  })

  test('lets nobody take in small pieces what somebody waits for in a large one', () => {
    const { queue, ask, told } = createBench()
    ask('a', { R: [1, 4] })
    ask('b', { R: [1, 4] })
    ask('large', { R: [4, 4] })
    expect(ask('small', { R: [1, 4] })).toBe('waiting')
    queue.release('a')
    expect(told).toEqual([])
    queue.release('b')
    expect(told).toEqual(['large admitted'])
  })

  test('holds nobody up who needs something else, or what is left beyond it', () => {
    const { ask } = createBench()
    ask('a', { R: [1, 1] })
    expect(ask('both', { R: [1, 1], S: [2, 3] })).toBe('waiting')
    expect(ask('other', { T: [1, 1] })).toBe('admitted')
    expect(ask('beyond', { S: [1, 3] })).toBe('admitted')
    expect(ask('kept', { S: [1, 3] })).toBe('waiting')
  })

  test('refuses the last in the order when too many wait: mostly the newcomer', () => {
    const { ask, told } = createBench({ maxWaiting: 2 })
    ask('a', { R: [1, 1] })
    ask('b', { R: [1, 1] }, { priority: 2 })
    ask('c', { R: [1, 1] }, { priority: 2 })
    expect(ask('d', { R: [1, 1] }, { priority: 2 })).toBe('refused')
    expect(ask('e', { R: [1, 1] }, { priority: 1 })).toBe('waiting')
    expect(told).toEqual(['c full'])
  })

  test('lets nobody wait where nobody may', () => {
    const { ask } = createBench({ maxWaiting: 0 })
    expect([ask('a', { R: [1, 1] }), ask('b', { R: [1, 1] })]).toEqual(['admitted', 'refused'])
  })

  test('refuses whoever has waited for long enough, and admits those whom that helps', () => {
    const { ask, pass, told, queue } = createBench()
    ask('a', { R: [1, 2] })
    ask('large', { R: [2, 2] }, { waitMs: 100 })
    ask('small', { R: [1, 2] })
    expect(queue.nextTickMs()).toBe(100)
    pass(100)
    expect(told).toEqual(['large timeout', 'small admitted'])
    expect(queue.nextTickMs()).toBeUndefined()
  })

  test('frees the place of one that leaves at once, and admits those whom that helps', () => {
    const { ask, told, queue } = createBench()
    ask('a', { R: [1, 2] })
    ask('large', { R: [2, 2] })
    ask('small', { R: [1, 2] })
    queue.leave('large')
    expect(told).toEqual(['large left', 'small admitted'])
    expect(queue.waiting()).toBe(0)
  })

  test('takes back what nobody gives back, when the lease runs out', () => {
    const { ask, pass, told, queue } = createBench()
    ask('lost', { R: [1, 1] })
    pass(900)
    ask('b', { R: [1, 1] })
    expect(queue.nextTickMs()).toBe(1000)
    pass(100)
    expect(told).toEqual(['lost lease', 'b admitted'])
    queue.release('lost')
    expect(queue.inUse('R')).toBe(1)
  })

  test('sees a lease that ran out when the next one asks', () => {
    const { ask, pass, told } = createBench()
    ask('lost', { R: [1, 1] })
    pass(1000)
    expect(ask('b', { R: [1, 1] })).toBe('admitted')
    expect(told).toEqual(['lost lease'])
  })

  test.each(['release', 'leave'] as const)('%s of what it does not know changes nothing', (verb) => {
    const { ask, queue, told } = createBench()
    ask('a', { R: [1, 1] })
    ask('b', { R: [1, 1] })
    queue[verb](verb === 'release' ? 'b' : 'a')
    queue[verb]('nobody')
    expect([queue.inUse('R'), queue.waiting(), told]).toEqual([1, 1, []])
  })
})
