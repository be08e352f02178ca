import { describe, expect, test } from '@jest/globals'
import { worthwhileLoadMs } from '../../../src/routing/cost-profile/cost-estimate.ts'
import { type CostProfile, createCostProfile } from '../../../src/routing/cost-profile/cost-profile.ts'

const profile = (): CostProfile => createCostProfile({ initialMsPerToken: 1 })

const promptLengths = [300, 900, 2_000, 4_500, 9_000, 20_000, 700, 12_000]

/** Turns of many lengths, each of which takes `fixedMs` and 0.1 ms for each token, changed by `disturb`. */
const teach = (
  costs: CostProfile,
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
    const costs = createCostProfile({ initialMsPerToken: 0.5, initialPrefillMs: 30 })
    expect(costs.recomputeMs('m', 1_000)).toBe(530)
    expect(costs.recomputeMs('m', 0)).toBe(0)
    expect(costs.typicalPrefillMs('m')).toBe(542)
  })

  test('is learnt from the first turn on', () => {
    const costs = profile()
    costs.observe('m', { tokens: 1_000, ttfbMs: 100 })
    expect(costs.recomputeMs('m', 2_000)).toBeCloseTo(200)
  })

  test('is learnt apart for the prompt and for each of its tokens', () => {
    const costs = profile()
    teach(costs, 100)
    expect(costs.recomputeMs('m', 10_000)).toBeCloseTo(1_050, 0)
    expect(costs.recomputeMs('m', 100)).toBeCloseTo(60, 0)
  })

  test('is learnt apart for each model', () => {
    const costs = profile()
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
    const costs = profile()
    teach(costs, 60)
    teach(costs, 200, disturb)
    const learnt = costs.recomputeMs('m', 10_000)
    expect(learnt).toBeGreaterThan(1_050 / 2)
    expect(learnt).toBeLessThan(1_050 * 1.5)
  })

  test('follows an engine that has become slower', () => {
    const costs = profile()
    teach(costs, 100)
    teach(costs, 300, (ms) => ms * 5)
    expect(costs.recomputeMs('m', 10_000)).toBeGreaterThan(0.9 * 5_250)
  })

  test('follows an engine that has become quicker', () => {
    const costs = profile()
    teach(costs, 100)
    teach(costs, 300, (ms) => ms / 5)
    expect(costs.recomputeMs('m', 10_000)).toBeLessThan(1.1 * 210)
  })

  test('is not changed by turns that were predicted to wait as long as they did', () => {
    const costs = profile()
    teach(costs, 100)
    for (let index = 0; index < 500; index += 1) {
      costs.observe('m', { tokens: 5_000, ttfbMs: 30_000 + 550, waitedMs: 30_000 })
    }
    expect(costs.recomputeMs('m', 10_000)).toBeCloseTo(1_050, -1)
  })

  test('is hardly changed by turns whose wait was predicted wrongly', () => {
    const costs = profile()
    teach(costs, 100)
    for (let index = 0; index < 100; index += 1) {
      costs.observe('m', { tokens: 5_000, ttfbMs: 60_000, waitedMs: 40_000 })
      costs.observe('m', { tokens: 5_000, ttfbMs: 20_000, waitedMs: 40_000 })
    }
    const learnt = costs.recomputeMs('m', 10_000)
    expect(learnt).toBeGreaterThan(950)
    expect(learnt).toBeLessThan(1_150)
  })

  test.each([
    { name: 'a short prompt', tokens: 127, ttfbMs: 5_000, waitedMs: 0 },
    { name: 'no time', tokens: 1_000, ttfbMs: 0, waitedMs: 0 },
    { name: 'no number', tokens: Number.NaN, ttfbMs: 100, waitedMs: 0 },
    { name: 'an endless wait', tokens: 1_000, ttfbMs: 100, waitedMs: Number.POSITIVE_INFINITY },
  ])('learns nothing from $name', ({ tokens, ttfbMs, waitedMs }) => {
    const costs = profile()
    costs.observe('m', { tokens, ttfbMs, waitedMs })
    expect(costs.recomputeMs('m', 1_000)).toBe(1_000)
    expect(costs.revision).toBe(0)
  })
})

describe('what a load costs', () => {
  test('is the default until one was seen', () => {
    const costs = createCostProfile({ initialMsPerToken: 1, initialMsPerByte: 1e-6, initialLoadMs: 20 })
    expect(costs.loadMs('m', 1_000_000)).toBe(21)
    expect(costs.loadMs('m', 0)).toBe(0)
  })

  test('is learnt apart for the load and for each of its bytes', () => {
    const costs = profile()
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
  const costs = createCostProfile({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 100 })
  const load = { model: 'm', stored: { tokens: 1_000, bytes: 1_000_000 }, residentTokens: 0 }

  test.each([
    { name: 'what is sooner there than computed is loaded', change: {}, ms: 200 },
    { name: 'only what lacks is loaded', change: { residentTokens: 500 }, ms: 150 },
    { name: 'earlier loads are waited for', change: { backlogMs: 700 }, ms: 900 },
    { name: 'not when that makes it later than computing', change: { backlogMs: 800 }, ms: undefined },
    { name: 'not when little lacks', change: { residentTokens: 900 }, ms: undefined },
    { name: 'not when nothing lacks', change: { residentTokens: 1_000 }, ms: undefined },
    { name: 'not when the pod has more', change: { residentTokens: 2_000 }, ms: undefined },
    { name: 'not when nothing is stored', change: { stored: { tokens: 0, bytes: 0 } }, ms: undefined },
  ])('$name', ({ change, ms }) => {
    expect(worthwhileLoadMs(costs, { ...load, ...change })).toBe(ms)
  })
})

describe('a restored profile', () => {
  test('knows what the one before knew, and learns on', () => {
    const before = profile()
    teach(before, 100)
    before.observeLoad('m', { bytes: 1e9, loadMs: 300 })
    const after = profile()
    expect(after.restore(before.toText())).toBe(true)
    expect(after.recomputeMs('m', 10_000)).toBe(before.recomputeMs('m', 10_000))
    expect(after.loadMs('m', 5e8)).toBe(before.loadMs('m', 5e8))
    teach(after, 300, (ms) => ms * 2)
    expect(after.recomputeMs('m', 10_000)).toBeGreaterThan(1.5 * before.recomputeMs('m', 10_000))
  })

  test('keeps what it has seen itself', () => {
    const before = profile()
    teach(before, 10)
    const after = profile()
    after.observe('m', { tokens: 1_000, ttfbMs: 7_000 })
    after.restore(before.toText())
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
  ])('refuses $name, and knows what it knew', ({ text }) => {
    const costs = profile()
    expect(costs.restore(text)).toBe(false)
    expect(costs.recomputeMs('m', 1_000)).toBe(1_000)
  })

  test('remembers no more models than it may, those that were used last', () => {
    const costs = createCostProfile({ initialMsPerToken: 1, maxModels: 2 })
    for (const model of ['a', 'b', 'c']) costs.observe(model, { tokens: 1_000, ttfbMs: 100 })
    expect(['a', 'b', 'c'].map((model) => Math.round(costs.recomputeMs(model, 1_000)))).toEqual([1_000, 100, 100])
    const after = createCostProfile({ initialMsPerToken: 1, maxModels: 1 })
    after.restore(costs.toText())
    expect(['b', 'c'].map((model) => Math.round(after.recomputeMs(model, 1_000)))).toEqual([1_000, 100])
  })
})
