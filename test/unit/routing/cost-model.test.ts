import { describe, expect, test } from '@jest/globals'
import { type CostModel, createCostModel, worthwhileLoadMs } from '../../../src/routing/cost-model.ts'
import { decodeCosts, encodeCosts } from '../../../src/routing/cost-model-store.ts'

const model = (): CostModel => createCostModel({ initialMsPerToken: 1 })

const promptLengths = [300, 900, 2_000, 4_500, 9_000, 20_000, 700, 12_000]

/** Turns of many lengths, each of which takes `fixedMs` and 0.1 ms for each token, changed by `disturb`. */
const teach = (
  costs: CostModel,
  turns: number,
  disturb: (ms: number, index: number) => number = (ms) => ms,
  fixedMs = 50,
): void => {
  for (let index = 0; index < turns; index += 1) {
    const tokens = promptLengths[index % promptLengths.length] ?? 0
    costs.observe('m', { tokens, ttfbMs: disturb(fixedMs + 0.1 * tokens, index) })
  }
}

describe('what computing a prompt costs', () => {
  test('is the default until a turn was seen', () => {
    const costs = createCostModel({ initialMsPerToken: 0.5 })
    expect(costs.recomputeMs('m', 1_000)).toBe(500)
    expect(costs.recomputeMs('m', 0)).toBe(0)
    expect(costs.typicalPrefillMs('m')).toBe(512)
  })

  test('is learnt from the first turn on', () => {
    const costs = model()
    costs.observe('m', { tokens: 1_000, ttfbMs: 100 })
    expect(costs.recomputeMs('m', 2_000)).toBeCloseTo(200)
  })

  test('is learnt apart for the prompt and for each of its tokens', () => {
    const costs = model()
    teach(costs, 100)
    expect(costs.recomputeMs('m', 10_000)).toBeCloseTo(1_050, 0)
    expect(costs.recomputeMs('m', 100)).toBeCloseTo(60, 0)
  })

  test('is learnt apart for each model', () => {
    const costs = model()
    costs.observe('small', { tokens: 1_000, ttfbMs: 100 })
    expect(costs.recomputeMs('large', 1_000)).toBe(1_000)
  })

  test.each([
    {
      name: 'a turn in ten took a hundred times as long',
      disturb: (ms: number, i: number) => (i % 10 === 3 ? ms * 100 : ms),
    },
    {
      name: 'every other turn waited for two seconds',
      disturb: (ms: number, i: number) => (i % 2 === 0 ? ms + 2_000 : ms),
    },
    { name: 'a turn in ten said nothing but an error', disturb: (ms: number, i: number) => (i % 10 === 3 ? 1 : ms) },
  ])('stays within half of the truth where $name', ({ disturb }) => {
    const costs = model()
    teach(costs, 60)
    teach(costs, 200, disturb)
    const learnt = costs.recomputeMs('m', 10_000)
    expect(learnt).toBeGreaterThan(1_050 / 2)
    expect(learnt).toBeLessThan(1_050 * 1.5)
  })

  test.each([
    { name: 'slower', factor: 5, from: 0.9 * 5_250, to: 1.1 * 5_250 },
    { name: 'quicker', factor: 0.2, from: 0.9 * 210, to: 1.1 * 210 },
  ])('follows an engine that has become $name', ({ factor, from, to }) => {
    const costs = model()
    teach(costs, 100)
    teach(costs, 300, (ms) => ms * factor)
    const learnt = costs.recomputeMs('m', 10_000)
    expect(learnt).toBeGreaterThan(from)
    expect(learnt).toBeLessThan(to)
  })

  test.each([
    { name: 'a short prompt', tokens: 127, ttfbMs: 5_000 },
    { name: 'no time', tokens: 1_000, ttfbMs: 0 },
    { name: 'no number', tokens: Number.NaN, ttfbMs: 100 },
    { name: 'an endless time', tokens: 1_000, ttfbMs: Number.POSITIVE_INFINITY },
  ])('learns nothing from $name', ({ tokens, ttfbMs }) => {
    const costs = model()
    costs.observe('m', { tokens, ttfbMs })
    expect(costs.recomputeMs('m', 1_000)).toBe(1_000)
    expect(costs.revision).toBe(0)
  })
})

describe('what a load costs', () => {
  test('is the default until one was seen', () => {
    const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-6, initialLoadMs: 20 })
    expect(costs.loadMs('m', 1_000_000)).toBe(21)
    expect(costs.loadMs('m', 0)).toBe(0)
  })

  test('is learnt apart for the load and for each of its bytes', () => {
    const costs = model()
    for (let index = 0; index < 100; index += 1) {
      const bytes = (1 + (index % 7)) * 1e8
      costs.observeLoad('m', { bytes, loadMs: 15 + bytes / 1e7 })
    }
    expect(costs.loadMs('m', 1e9)).toBeCloseTo(115, 0)
    expect(costs.recomputeMs('m', 1_000)).toBe(1_000)
  })
})

describe('worthwhileLoadMs', () => {
  // Computing 1,000 tokens takes a second; loading their 1,000,000 bytes takes 200 ms.
  const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 100 })
  const load = { model: 'm', stored: { tokens: 1_000, bytes: 1_000_000 }, residentTokens: 0 }

  test.each([
    { name: 'what is sooner there than computed is loaded', change: {}, ms: 200 },
    { name: 'only what lacks is loaded', change: { residentTokens: 500 }, ms: 150 },
    { name: 'not when little lacks', change: { residentTokens: 900 }, ms: undefined },
    { name: 'not when nothing lacks', change: { residentTokens: 1_000 }, ms: undefined },
    { name: 'not when the pod has more', change: { residentTokens: 2_000 }, ms: undefined },
    { name: 'not when nothing is stored', change: { stored: { tokens: 0, bytes: 0 } }, ms: undefined },
  ])('$name', ({ change, ms }) => {
    expect(worthwhileLoadMs(costs, { ...load, ...change })).toBe(ms)
  })
})

describe('a restored cost model', () => {
  test('predicts the same as the saved one, and learns on', () => {
    const before = model()
    teach(before, 100)
    before.observeLoad('m', { bytes: 1e9, loadMs: 300 })
    const after = model()
    after.restore(decodeCosts(encodeCosts(before.snapshot())))
    expect(after.recomputeMs('m', 10_000)).toBe(before.recomputeMs('m', 10_000))
    expect(after.loadMs('m', 5e8)).toBe(before.loadMs('m', 5e8))
    teach(after, 300, (ms) => ms * 2)
    expect(after.recomputeMs('m', 10_000)).toBeGreaterThan(1.5 * before.recomputeMs('m', 10_000))
  })

  test('keeps what it has seen itself', () => {
    const before = model()
    teach(before, 10)
    const after = model()
    after.observe('m', { tokens: 1_000, ttfbMs: 7_000 })
    after.restore(before.snapshot())
    expect(after.recomputeMs('m', 1_000)).toBeCloseTo(7_000)
  })

  test.each([
    { name: 'nothing', text: '' },
    { name: 'something else', text: '[1,2]' },
    { name: 'another version', text: '{"version":2,"models":[]}' },
    { name: 'models in another form', text: '{"version":1,"models":{}}' },
    { name: 'a model without costs', text: '{"version":1,"models":[["m"]]}' },
    { name: 'too few numbers', text: '{"version":1,"models":[["m",[1,2,3],[0,0,0,0,0,0]]]}' },
    { name: 'a number below 0', text: '{"version":1,"models":[["m",[1,-2,3,4,5,6],[0,0,0,0,0,0]]]}' },
    { name: 'a number beyond all sense', text: '{"version":1,"models":[["m",[1,2,3,4,5,1e300],[0,0,0,0,0,0]]]}' },
    { name: 'no number', text: '{"version":1,"models":[["m",[1,2,3,4,5,"6"],[0,0,0,0,0,0]]]}' },
  ])('refuses a text with $name', ({ text }) => {
    expect(() => decodeCosts(text)).toThrow('damaged')
  })
})
