import { describe, expect, test } from '@jest/globals'
import { InFlightTurns } from '../../../src/routing/in-flight-turns.ts'

const createTurns = () => {
  const clock = { nowMs: 0 }
  return { clock, turns: new InFlightTurns({ turnLeaseMs: 100, nowMs: () => clock.nowMs }) }
}

describe('InFlightTurns', () => {
  test('counts turns in and out, pod by pod', () => {
    const { turns } = createTurns()
    turns.started('a:1', 't1')
    turns.started('a:1', 't2')
    turns.started('b:1', 't3')
    expect([turns.count('a:1'), turns.count('b:1'), turns.count('c:1')]).toEqual([2, 1, 0])
    turns.ended('a:1', 't1')
    expect([turns.count('a:1'), turns.count('b:1')]).toEqual([1, 1])
  })

  test('a repeated end and the end of an unknown turn change nothing', () => {
    const { turns } = createTurns()
    turns.started('a:1', 't1')
    turns.started('a:1', 't2')
    turns.ended('a:1', 't1')
    turns.ended('a:1', 't1')
    turns.ended('a:1', 't9')
    turns.ended('b:1', 't2')
    expect(turns.count('a:1')).toBe(1)
  })

  test('forgets a turn when its lease has run out, and no sooner', () => {
    const { clock, turns } = createTurns()
    turns.started('a:1', 't1')
    clock.nowMs = 60
    turns.started('a:1', 't2')
    clock.nowMs = 99
    expect(turns.count('a:1')).toBe(2)
    clock.nowMs = 100
    expect(turns.count('a:1')).toBe(1)
    clock.nowMs = 160
    expect(turns.count('a:1')).toBe(0)
  })

  test('a turn that starts twice counts once and renews its lease', () => {
    const { clock, turns } = createTurns()
    turns.started('a:1', 't1')
    clock.nowMs = 50
    turns.started('a:1', 't2')
    clock.nowMs = 60
    turns.started('a:1', 't1')
    clock.nowMs = 149
    expect(turns.count('a:1')).toBe(2)
    clock.nowMs = 150
    expect(turns.count('a:1')).toBe(1)
    clock.nowMs = 160
    expect(turns.count('a:1')).toBe(0)
  })
})
