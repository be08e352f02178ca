import { describe, expect, test } from '@jest/globals'
import { PrefillQueue } from '../../../src/routing/prefill-queue.ts'

const queueOf = (...works: readonly number[]): PrefillQueue => {
  const queue = new PrefillQueue()
  for (const [index, workMs] of works.entries()) queue.add(`t${index + 1}`, workMs, 0)
  return queue
}

describe('PrefillQueue', () => {
  test('an empty queue has no remaining work', () => {
    expect(queueOf().remainingMs(0)).toBe(0)
  })

  test('work drains with time', () => {
    const queue = queueOf(500, 300)
    expect([0, 600, 10_000].map((nowMs) => queue.remainingMs(nowMs))).toEqual([800, 200, 0])
  })

  test('work that is added after a pause starts then', () => {
    const queue = queueOf(500)
    queue.add('t2', 300, 10_000)
    expect(queue.remainingMs(10_100)).toBe(200)
  })

  test('a turn that is done early takes all work before it along', () => {
    const queue = queueOf(500, 500, 500)
    queue.done('t2', 100)
    expect(queue.remainingMs(100)).toBe(500)
    queue.done('t1', 100)
    expect(queue.remainingMs(100)).toBe(500)
    queue.done('t3', 150)
    expect(queue.remainingMs(150)).toBe(0)
  })

  test.each([
    { name: 'of the first turn', turnId: 't1', remainingMs: 500 },
    { name: 'of a turn in the middle', turnId: 't2', remainingMs: 600 },
    { name: 'of the last turn', turnId: 't3', remainingMs: 700 },
    { name: 'of an unknown turn', turnId: 't9', remainingMs: 900 },
  ])('removed work $name leaves the rest', ({ turnId, remainingMs }) => {
    const queue = queueOf(500, 300, 200)
    queue.remove(turnId, 100)
    expect(queue.remainingMs(100)).toBe(remainingMs)
  })

  test('the end of a turn whose work has drained changes nothing', () => {
    const queue = queueOf(100)
    queue.add('t2', 300, 5_000)
    queue.done('t1', 5_000)
    expect(queue.remainingMs(5_000)).toBe(300)
  })

  test('above its limit, the first work counts as done', () => {
    const queue = new PrefillQueue()
    for (let turn = 0; turn <= 65_536; turn += 1) queue.add(`t${turn}`, 1, 0)
    expect(queue.remainingMs(0)).toBe(65_537)
    queue.remove('t0', 0)
    expect(queue.remainingMs(0)).toBe(65_537)
    queue.done('t65536', 0)
    expect(queue.remainingMs(0)).toBe(0)
  })
})
