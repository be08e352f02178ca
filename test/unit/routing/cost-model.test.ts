import { describe, expect, test } from '@jest/globals'
import { type CostModel, createCostModel, worthwhileLoadMs } from '../../../src/routing/cost-model.ts'
import { decodeCosts, encodeCosts } from '../../../src/routing/cost-model-store.ts'

const createModel = (): CostModel => createCostModel({ initialMsPerToken: 1 })

const promptLengths = [300, 900, 2_000, 4_500, 9_000, 20_000, 700, 12_000]

type Disturb = (ms: number, index: number) => number

/** Turns of many lengths, each of which takes 50 ms and 0.1 ms for each token, changed by `disturb`. */
const teach = (costs: CostModel, turns: number, disturb: Disturb = (ms) => ms): void => {
  for (let index = 0; index < turns; index += 1) {
    const tokens = promptLengths[index % promptLengths.length] ?? 0
    costs.observe('m', { tokens, ttfbMs: disturb(50 + 0.1 * tokens, index) })
  }
}

describe('createCostModel', () => {
  test('predicts the default until a turn was observed', () => {
    const costs = createCostModel({ initialMsPerToken: 0.5 })
    expect([costs.recomputeMs('m', 1_000), costs.recomputeMs('m', 0), costs.typicalPrefillMs('m')]).toEqual([
      500, 0, 512,
    ])
  })

  test('learns from the first turn on, each model apart', () => {
    const costs = createModel()
    costs.observe('small', { tokens: 1_000, ttfbMs: 100 })
    expect(costs.recomputeMs('small', 2_000)).toBeCloseTo(200)
    expect(costs.recomputeMs('large', 1_000)).toBe(1_000)
  })

  test('separates the fixed part of a prefill from the part per token', () => {
    const costs = createModel()
    teach(costs, 100)
    expect(costs.recomputeMs('m', 10_000)).toBeCloseTo(1_050, 0)
    expect(costs.recomputeMs('m', 100)).toBeCloseTo(60, 0)
  })

  test.each<[string, Disturb]>([
    ['one turn in ten takes a hundred times as long', (ms, index) => (index % 10 === 3 ? ms * 100 : ms)],
    ['every other turn waits for two seconds', (ms, index) => (index % 2 === 0 ? ms + 2_000 : ms)],
    ['one turn in ten ends with an error at once', (ms, index) => (index % 10 === 3 ? 1 : ms)],
  ])('stays within half of the truth when %s', (_title, disturb) => {
    const costs = createModel()
    teach(costs, 60)
    teach(costs, 200, disturb)
    const learnt = costs.recomputeMs('m', 10_000)
    expect(learnt).toBeGreaterThan(1_050 / 2)
    expect(learnt).toBeLessThan(1_050 * 1.5)
  })

  test.each([5, 0.2])('follows an engine that now takes %d times as long', (factor) => {
    const costs = createModel()
    teach(costs, 100)
    teach(costs, 300, (ms) => ms * factor)
    expect(costs.recomputeMs('m', 10_000) / (1_050 * factor)).toBeGreaterThan(0.9)
    expect(costs.recomputeMs('m', 10_000) / (1_050 * factor)).toBeLessThan(1.1)
  })

  test.each([
    ['a short prompt', { tokens: 127, ttfbMs: 5_000 }],
    ['no time', { tokens: 1_000, ttfbMs: 0 }],
    ['no number', { tokens: Number.NaN, ttfbMs: 100 }],
    ['an infinite time', { tokens: 1_000, ttfbMs: Number.POSITIVE_INFINITY }],
  ])('learns nothing from %s', (_title, observation) => {
    const costs = createModel()
    costs.observe('m', observation)
    expect([costs.recomputeMs('m', 1_000), costs.revision]).toEqual([1_000, 0])
  })

  test('predicts the default load until one was observed', () => {
    const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-6, initialLoadMs: 20 })
    expect([costs.loadMs('m', 1_000_000), costs.loadMs('m', 0)]).toEqual([21, 0])
  })

  test('separates the fixed part of a load from the part per byte', () => {
    const costs = createModel()
    for (let index = 0; index < 100; index += 1) {
      const bytes = (1 + (index % 7)) * 1e8
      costs.observeLoad('m', { bytes, loadMs: 15 + bytes / 1e7 })
    }
    expect(costs.loadMs('m', 1e9)).toBeCloseTo(115, 0)
    expect(costs.recomputeMs('m', 1_000)).toBe(1_000)
  })

  test('predicts the same after a restart, and learns on', () => {
    const before = createModel()
    teach(before, 100)
    before.observeLoad('m', { bytes: 1e9, loadMs: 300 })
    const after = createModel()
    after.restore(decodeCosts(encodeCosts(before.snapshot())))
    expect(after.recomputeMs('m', 10_000)).toBe(before.recomputeMs('m', 10_000))
    expect(after.loadMs('m', 5e8)).toBe(before.loadMs('m', 5e8))
    teach(after, 300, (ms) => ms * 2)
    expect(after.recomputeMs('m', 10_000)).toBeGreaterThan(1.5 * before.recomputeMs('m', 10_000))
  })

  test('keeps what it has observed itself when costs are restored', () => {
    const before = createModel()
    teach(before, 10)
    const after = createModel()
    after.observe('m', { tokens: 1_000, ttfbMs: 7_000 })
    after.restore(before.snapshot())
    expect(after.recomputeMs('m', 1_000)).toBeCloseTo(7_000)
  })
})

test.each([
  ['the load is quicker than the prefill', {}, 200],
  ['the pod lacks a part', { residentTokens: 500 }, 150],
  ['the pod lacks little', { residentTokens: 900 }, undefined],
  ['the pod lacks nothing', { residentTokens: 1_000 }, undefined],
  ['the pod holds more', { residentTokens: 2_000 }, undefined],
  ['nothing is stored', { stored: { tokens: 0, bytes: 0 } }, undefined],
])('worthwhileLoadMs when %s', (_title, change, ms) => {
  // Computing 1,000 tokens takes a second; loading their 1,000,000 bytes takes 200 ms.
  const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 100 })
  const load = { model: 'm', stored: { tokens: 1_000, bytes: 1_000_000 }, residentTokens: 0 }
  expect(worthwhileLoadMs(costs, { ...load, ...change })).toBe(ms)
})

const noSums = { count: 0, weight: 0, x: 0, y: 0, xx: 0, xy: 0 }
const saved = (prefill: object): string =>
  JSON.stringify({ version: 2, models: [{ model: 'm', prefill: { ...noSums, ...prefill }, load: noSums }] })

test.each([
  ['nothing', ''],
  ['something else', '[1,2]'],
  ['another version', '{"version":1,"models":[]}'],
  ['models in another form', '{"version":2,"models":{}}'],
  ['a model without costs', '{"version":2,"models":[{"model":"m"}]}'],
  ['too few numbers', saved({ xy: undefined })],
  ['a number below 0', saved({ weight: -2 })],
  ['a number beyond all sense', saved({ xy: 1e300 })],
  ['no number', saved({ xy: '6' })],
])('decodeCosts refuses a text with %s', (_title, text) => {
  expect(() => decodeCosts(text)).toThrow('damaged')
})
