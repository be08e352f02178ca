import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import { decodeCosts, encodeCosts } from '../../../src/routing/cost-model-store.ts'

const anyNumber = fc.oneof(fc.double(), fc.double({ min: 0, max: 1e7, noNaN: true }), fc.nat())

const observation = fc.record({ units: anyNumber, tookMs: anyNumber })

describe('a cost model', () => {
  test('predicts finite, rising times after any observations, and the same after a restart', () => {
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 60 }), (seen) => {
        const costs = createCostModel({ initialMsPerToken: 1 })
        for (const { units, tookMs } of seen) {
          costs.observe('m', { tokens: units, ttfbMs: tookMs })
          costs.observeLoad('m', { bytes: units, loadMs: tookMs })
        }
        const sizes = [0, 1, 100, 10_000, 1e9]
        const predicted = [sizes.map((n) => costs.recomputeMs('m', n)), sizes.map((n) => costs.loadMs('m', n))]
        for (const line of predicted) {
          expect(line[0]).toBe(0)
          expect(line.every((ms) => Number.isFinite(ms) && ms >= 0)).toBe(true)
          expect([...line].sort((a, b) => a - b)).toEqual(line)
        }
        expect(costs.typicalPrefillMs('m')).toBeGreaterThanOrEqual(1)
        const restored = createCostModel({ initialMsPerToken: 1 })
        restored.restore(decodeCosts(encodeCosts(costs.snapshot())))
        expect([sizes.map((n) => restored.recomputeMs('m', n)), sizes.map((n) => restored.loadMs('m', n))]).toEqual(
          predicted,
        )
      }),
    )
  })
})
