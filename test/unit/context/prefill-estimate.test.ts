import { describe, expect, test } from '@jest/globals'
import { createPrefillEstimate } from '../../../src/context/prefill-estimate.ts'

describe('createPrefillEstimate', () => {
  test('starts from the configured speed', () => {
    expect(createPrefillEstimate(0.5).recomputeMs('m', 3000)).toBe(1500)
  })

  test('takes the first long turn at its word', () => {
    const estimate = createPrefillEstimate(0.5)

    estimate.observe('m', { tokens: 1000, firstByteMs: 2000 })

    expect(estimate.recomputeMs('m', 100)).toBe(200)
  })

  test('follows later turns by a fifth of the difference', () => {
    const estimate = createPrefillEstimate(0.5)

    estimate.observe('m', { tokens: 1000, firstByteMs: 1000 })
    estimate.observe('m', { tokens: 1000, firstByteMs: 2000 })

    expect(estimate.recomputeMs('m', 1000)).toBeCloseTo(1200)
  })

  test('gets near what all turns say', () => {
    const estimate = createPrefillEstimate(100)

    for (let turn = 0; turn < 50; turn += 1) estimate.observe('m', { tokens: 500, firstByteMs: 500 + (turn % 2) * 100 })

    expect(estimate.recomputeMs('m', 1)).toBeGreaterThan(1)
    expect(estimate.recomputeMs('m', 1)).toBeLessThan(1.2)
  })

  test('keeps models apart', () => {
    const estimate = createPrefillEstimate(0.5)

    estimate.observe('slow', { tokens: 1000, firstByteMs: 9000 })

    expect(estimate.recomputeMs('fast', 10)).toBe(5)
  })

  test.each([
    { name: 'a short prompt', tokens: 127, firstByteMs: 5000 },
    { name: 'a prompt that was all reused', tokens: 0, firstByteMs: 5000 },
    { name: 'more reused than prompted', tokens: -5, firstByteMs: 5000 },
    { name: 'no time', tokens: 1000, firstByteMs: 0 },
    { name: 'a time that went backwards', tokens: 1000, firstByteMs: -3 },
  ])('learns nothing from $name', ({ tokens, firstByteMs }) => {
    const estimate = createPrefillEstimate(0.5)

    estimate.observe('m', { tokens, firstByteMs })

    expect(estimate.recomputeMs('m', 100)).toBe(50)
  })

  test('forgets the models that were seen longest ago', () => {
    const estimate = createPrefillEstimate(0.5)

    for (let model = 0; model <= 1000; model += 1) estimate.observe(`m${model}`, { tokens: 1000, firstByteMs: 4000 })

    expect(estimate.recomputeMs('m0', 1000)).toBe(500)
    expect(estimate.recomputeMs('m1000', 1000)).toBe(4000)
  })
})
