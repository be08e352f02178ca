import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createWorkBacklog } from '../../../src/routing/work-backlog.ts'

type Step =
  | { readonly kind: 'start'; readonly workMs: number }
  | { readonly kind: 'end'; readonly which: number; readonly how: 'done' | 'abandoned' }
  | { readonly kind: 'pass'; readonly ms: number }

interface Again {
  readonly kind: 'again'
  readonly back: number
  readonly workMs: number
}

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('start' as const), workMs: fc.nat({ max: 1_000 }) }),
  fc.record({
    kind: fc.constant('end' as const),
    which: fc.nat(),
    how: fc.constantFrom('done' as const, 'abandoned' as const),
  }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat({ max: 500 }) }),
)

/** The same by its definition: every piece knows when it will be done, and whatever ends tells all others. */
const createModel = (nowMs: () => number) => {
  let freeMs = 0
  let works: { readonly turnId: string; readonly waitMs: number; readonly workMs: number; doneMs: number }[] = []
  return {
    started: (turnId: string, workMs: number): number => {
      const waitMs = Math.max(0, freeMs - nowMs())
      freeMs = nowMs() + waitMs + workMs
      works.push({ turnId, waitMs, workMs, doneMs: freeMs })
      return waitMs
    },
    ended: (turnId: string, how: 'done' | 'abandoned'): number | undefined => {
      const at = works.findIndex((work) => work.turnId === turnId)
      const work = works[at]
      if (work === undefined) return undefined
      const leftMs = Math.max(0, work.doneMs - nowMs())
      const gainMs = how === 'done' ? leftMs : Math.min(leftMs, work.workMs)
      for (const [place, other] of works.entries()) {
        if (place > at) other.doneMs -= gainMs
        else if (how === 'done') other.doneMs = Math.min(other.doneMs, nowMs())
      }
      works = works.filter((other) => other !== work)
      freeMs -= gainMs
      return work.waitMs
    },
    remainingMs: (): number => Math.max(0, freeMs - nowMs()),
  }
}

/** Some turns are told of again, the newest most often. */
const again: fc.Arbitrary<Again> = fc.record({
  kind: fc.constant('again' as const),
  back: fc.oneof(fc.constant(0), fc.nat({ max: 20 })),
  workMs: fc.nat({ max: 1_000 }),
})

describe('a backlog', () => {
  test('tells the same as one that looks at every piece of work', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof({ weight: 3, arbitrary: step }, again), { maxLength: 300 }), (steps) => {
        let nowMs = 0
        const backlog = createWorkBacklog({ turnLeaseMs: 1e9, nowMs: () => nowMs })
        const model = createModel(() => nowMs)
        let added = 0
        for (const one of steps) {
          switch (one.kind) {
            case 'start':
              added += 1
              expect(backlog.started('a:1', `t${added}`, one.workMs)).toBe(model.started(`t${added}`, one.workMs))
              break
            case 'again': {
              const turnId = `t${Math.max(0, added - one.back)}`
              model.ended(turnId, 'abandoned')
              expect(backlog.started('a:1', turnId, one.workMs)).toBe(model.started(turnId, one.workMs))
              break
            }
            case 'end': {
              // Some have ended before.
              const turnId = `t${one.which % (added + 1)}`
              expect(backlog.ended('a:1', turnId, one.how)).toBe(model.ended(turnId, one.how))
              break
            }
            case 'pass':
              nowMs += one.ms
              break
          }
          expect(backlog.remainingMs('a:1')).toBe(model.remainingMs())
        }
      }),
    )
  })

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
