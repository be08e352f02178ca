import { describe, expect, test } from '@jest/globals'
import { createWorkBacklog } from '../../../src/routing/work-backlog.ts'

const backlogWithClock = () => {
  let nowMs = 1_000
  return {
    backlog: createWorkBacklog({ turnLeaseMs: 60_000, nowMs: () => nowMs }),
    pass: (milliseconds: number): void => {
      nowMs += milliseconds
    },
  }
}

describe('the backlog of a pod', () => {
  test('is empty at first', () => {
    expect(backlogWithClock().backlog.remainingMs('a:1')).toBe(0)
  })

  test('is what was added, and runs down by the clock', () => {
    const { backlog, pass } = backlogWithClock()
    expect(backlog.started('a:1', 't1', 500)).toBe(0)
    expect(backlog.started('a:1', 't2', 300)).toBe(500)
    expect(backlog.remainingMs('a:1')).toBe(800)
    expect(backlog.remainingMs('b:1')).toBe(0)
    pass(600)
    expect(backlog.remainingMs('a:1')).toBe(200)
    expect(backlog.started('a:1', 't3', 50)).toBe(200)
    pass(10_000)
    expect(backlog.remainingMs('a:1')).toBe(0)
  })

  test('is shorter once a turn ends sooner than predicted, with all that was ahead of it', () => {
    const { backlog, pass } = backlogWithClock()
    backlog.started('a:1', 't1', 500)
    backlog.started('a:1', 't2', 500)
    backlog.started('a:1', 't3', 500)
    pass(100)
    expect(backlog.ended('a:1', 't2', 'done')).toBe(500)
    expect(backlog.remainingMs('a:1')).toBe(500)
    expect(backlog.ended('a:1', 't1', 'done')).toBe(0)
    expect(backlog.remainingMs('a:1')).toBe(500)
    pass(50)
    expect(backlog.ended('a:1', 't3', 'done')).toBe(1_000)
    expect(backlog.remainingMs('a:1')).toBe(0)
  })

  test('loses what a turn that left will not need', () => {
    const { backlog } = backlogWithClock()
    backlog.started('a:1', 't1', 500)
    backlog.started('a:1', 't2', 300)
    backlog.started('a:1', 't3', 200)
    backlog.ended('a:1', 't2', 'abandoned')
    expect(backlog.remainingMs('a:1')).toBe(700)
    backlog.ended('a:1', 't3', 'done')
    expect(backlog.remainingMs('a:1')).toBe(0)
  })

  test('does not care for the end of work that was long done', () => {
    const { backlog, pass } = backlogWithClock()
    backlog.started('a:1', 't1', 100)
    pass(5_000)
    backlog.started('a:1', 't2', 300)
    expect(backlog.ended('a:1', 't1', 'done')).toBe(0)
    expect(backlog.remainingMs('a:1')).toBe(300)
  })

  test.each(['done', 'abandoned'] as const)(
    'knows no turn twice that is %s, and none that it was not told of',
    (end) => {
      const { backlog } = backlogWithClock()
      backlog.started('a:1', 't1', 100)
      expect(backlog.ended('a:1', 'other', end)).toBeUndefined()
      expect(backlog.ended('b:1', 't1', end)).toBeUndefined()
      expect(backlog.ended('a:1', 't1', end)).toBe(0)
      expect(backlog.ended('a:1', 't1', end)).toBeUndefined()
    },
  )

  test('forgets a turn that never ends', () => {
    const { backlog, pass } = backlogWithClock()
    backlog.started('a:1', 't1', 100)
    pass(60_000)
    backlog.started('a:1', 't2', 100)
    expect(backlog.ended('a:1', 't1', 'done')).toBeUndefined()
    expect(backlog.remainingMs('a:1')).toBe(100)
  })

  test('keeps a bound on turns whose ends are never told', () => {
    const { backlog } = backlogWithClock()
    for (let turn = 0; turn <= 65_536; turn++) backlog.started('a:1', `t${turn}`, 1)
    expect(backlog.ended('a:1', 't0', 'abandoned')).toBeUndefined()
    expect(backlog.ended('a:1', 't1', 'abandoned')).toBe(1)
    expect(backlog.ended('a:1', 't65536', 'done')).toBe(65_536)
    expect(backlog.remainingMs('a:1')).toBe(0)
  })
})
