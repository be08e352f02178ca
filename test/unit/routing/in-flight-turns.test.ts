import { expect, test } from '@jest/globals'
import { InFlightTurns } from '../../../src/routing/in-flight-turns.ts'

const setUp = () => {
  const clock = { nowMs: 0 }
  const turns = new InFlightTurns({ turnLeaseMs: 100, nowMs: () => clock.nowMs })
  for (const turnId of ['t1', 't2']) turns.started(turnId)
  const countAt = (nowMs: number): number => {
    clock.nowMs = nowMs
    return turns.count()
  }
  return { clock, turns, countAt }
}

test('counts turns in and out; a repeated end and the end of an unknown turn change nothing', () => {
  const { turns } = setUp()
  for (const turnId of ['t1', 't1', 't9']) turns.ended(turnId)
  expect(turns.count()).toBe(1)
})

test('drops a turn when its lease expires', () => {
  const { clock, turns, countAt } = setUp()
  clock.nowMs = 60
  turns.started('t3')
  expect([99, 100, 159, 160].map(countAt)).toEqual([3, 1, 1, 0])
})

test('counts a turn that starts twice once, and renews its lease', () => {
  const { clock, turns, countAt } = setUp()
  clock.nowMs = 60
  turns.started('t1')
  expect([99, 100, 159, 160].map(countAt)).toEqual([2, 1, 1, 0])
})

test.each([
  ['fewer requests than are counted: drops the oldest turns', 40_000, 2, 2],
  ['no request: keeps turns that may not have reached it', 40_000, 0, 1],
  ['more requests: drops none', 40_000, 9, 3],
  ['fewer requests at once: drops none', 29_999, 0, 3],
])('an engine that reports %s', (_name, nowMs, requests, count) => {
  const clock = { nowMs: 0 }
  const turns = new InFlightTurns({ turnLeaseMs: 600_000, nowMs: () => clock.nowMs })
  for (const [turnId, startMs] of Object.entries({ t1: 0, t2: 0, t3: 20_000 })) {
    clock.nowMs = startMs
    turns.started(turnId)
  }
  clock.nowMs = nowMs
  turns.reported(requests)
  expect(turns.count()).toBe(count)
})
