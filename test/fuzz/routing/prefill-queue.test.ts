import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { PrefillQueue } from '../../../src/routing/prefill-queue.ts'

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), workMs: fc.nat({ max: 1_000 }) }),
  fc.record({ kind: fc.constantFrom('done' as const, 'remove' as const), which: fc.nat() }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 500 }) }),
)

describe('PrefillQueue', () => {
  test('is never below 0 nor above the work of turns that have not ended, and no end makes it longer', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let nowMs = 0
        const queue = new PrefillQueue()
        const open = new Map<string, number>()
        let added = 0
        for (const one of steps) {
          const before = queue.remainingMs(nowMs)
          switch (one.kind) {
            case 'add':
              added += 1
              queue.add(`t${added}`, one.workMs, nowMs)
              open.set(`t${added}`, one.workMs)
              expect(queue.remainingMs(nowMs)).toBe(before + one.workMs)
              break
            case 'done':
            case 'remove': {
              const turnId = [...open.keys()][one.which % Math.max(1, open.size)] ?? 'none'
              queue[one.kind](turnId, nowMs)
              open.delete(turnId)
              expect(queue.remainingMs(nowMs)).toBeLessThanOrEqual(before)
              break
            }
            case 'pass':
              nowMs += one.ms
              expect(queue.remainingMs(nowMs)).toBe(Math.max(0, before - one.ms))
              break
          }
          const openMs = [...open.values()].reduce((sum, ms) => sum + ms, 0)
          expect(queue.remainingMs(nowMs)).toBeGreaterThanOrEqual(0)
          expect(queue.remainingMs(nowMs)).toBeLessThanOrEqual(openMs)
        }
      }),
    )
  })
})
