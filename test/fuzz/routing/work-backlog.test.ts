import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createWorkBacklog } from '../../../src/routing/work-backlog.ts'

type Step =
  | { readonly kind: 'start'; readonly workMs: number }
  | { readonly kind: 'end'; readonly which: number; readonly how: 'done' | 'abandoned' }
  | { readonly kind: 'pass'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('start' as const), workMs: fc.nat({ max: 1_000 }) }),
  fc.record({
    kind: fc.constant('end' as const),
    which: fc.nat(),
    how: fc.constantFrom('done' as const, 'abandoned' as const),
  }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 500 }) }),
)

describe('a backlog', () => {
  test('is never less than nothing nor more than the work that has not ended, and falls with every end', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let nowMs = 0
        const backlog = createWorkBacklog({ turnLeaseMs: 1e9, nowMs: () => nowMs })
        const open = new Map<string, number>()
        let added = 0
        for (const one of steps) {
          const before = backlog.remainingMs('a:1')
          switch (one.kind) {
            case 'start':
              added += 1
              expect(backlog.started('a:1', `t${added}`, one.workMs)).toBe(before)
              expect(backlog.remainingMs('a:1')).toBe(before + one.workMs)
              open.set(`t${added}`, one.workMs)
              break
            case 'end': {
              const turnId = [...open.keys()][one.which % Math.max(1, open.size)] ?? 'none'
              backlog.ended('a:1', turnId, one.how)
              expect(backlog.remainingMs('a:1')).toBeLessThanOrEqual(before)
              open.delete(turnId)
              break
            }
            case 'pass':
              nowMs += one.ms
              expect(backlog.remainingMs('a:1')).toBe(Math.max(0, before - one.ms))
              break
          }
          const openMs = [...open.values()].reduce((sum, ms) => sum + ms, 0)
          expect(backlog.remainingMs('a:1')).toBeGreaterThanOrEqual(0)
          expect(backlog.remainingMs('a:1')).toBeLessThanOrEqual(openMs)
        }
      }),
    )
  })
})
