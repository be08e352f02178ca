import { expect, test } from '@jest/globals'
import { PrefillQueue } from '../../../src/routing/prefill-queue.ts'

const queueOf = (...works: readonly number[]): PrefillQueue => {
  const queue = new PrefillQueue()
  for (const [index, workMs] of works.entries()) queue.add(`t${index + 1}`, workMs, 0)
  return queue
}

test.each([
  ['an empty queue has no work', [], [0, 0, 0]],
  ['work drains with time', [500, 300], [800, 200, 0]],
])('%s', (_title, works, remaining) => {
  const queue = queueOf(...works)
  expect([0, 600, 10_000].map((nowMs) => queue.remainingMs(nowMs))).toEqual(remaining)
})

test('work that is added to a drained queue starts then, and the end of drained work does not affect it', () => {
  const queue = queueOf(500)
  queue.add('t2', 300, 10_000)
  expect(queue.remainingMs(10_100)).toBe(200)
  queue.done('t1', 10_100)
  expect(queue.remainingMs(10_100)).toBe(200)
})

test('work that is done early takes all work before it along', () => {
  const queue = queueOf(500, 500, 500)
  for (const [turnId, nowMs, remainingMs] of [
    ['t2', 100, 500],
    ['t1', 100, 500],
    ['t3', 150, 0],
  ] as const) {
    queue.done(turnId, nowMs)
    expect(queue.remainingMs(nowMs)).toBe(remainingMs)
  }
})

test.each([
  ['of the first turn', 't1', 500],
  ['of a turn in the middle', 't2', 600],
  ['of the last turn', 't3', 700],
  ['of an unknown turn', 't9', 900],
])('removed work %s leaves the rest', (_title, turnId, remainingMs) => {
  const queue = queueOf(500, 300, 200)
  queue.remove(turnId, 100)
  expect(queue.remainingMs(100)).toBe(remainingMs)
})

test('above its limit, the first work counts as done', () => {
  const queue = new PrefillQueue()
  for (let turn = 0; turn <= 65_536; turn += 1) queue.add(`t${turn}`, 1, 0)
  queue.remove('t0', 0)
  expect(queue.remainingMs(0)).toBe(65_537)
  queue.done('t65536', 0)
  expect(queue.remainingMs(0)).toBe(0)
})
