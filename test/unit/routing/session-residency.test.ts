import { describe, expect, test } from '@jest/globals'
import { createSessionResidency } from '../../../src/routing/session-residency.ts'

const entries = (map: ReadonlyMap<string, number>): Readonly<Record<string, number>> => Object.fromEntries(map)

describe('where sessions probably lie', () => {
  test('is where they were served, with what the last turn there left', () => {
    const residency = createSessionResidency({ maxSessionsPerPod: 10 })
    residency.served('s', 'a:1', 100)
    residency.served('s', 'b:1', 200)
    residency.served('s', 'a:1', 300)
    residency.served('other', 'c:1', 50)
    expect(entries(residency.tokensByPod('s'))).toEqual({ 'a:1': 300, 'b:1': 200 })
    expect(entries(residency.tokensByPod('unknown'))).toEqual({})
  })

  test('a turn that left nothing changes nothing', () => {
    const residency = createSessionResidency({ maxSessionsPerPod: 10 })
    residency.served('s', 'a:1', 100)
    residency.served('s', 'a:1', 0)
    expect(entries(residency.tokensByPod('s'))).toEqual({ 'a:1': 100 })
  })

  test('a pod with too many sessions has lost the one that was served longest ago', () => {
    const residency = createSessionResidency({ maxSessionsPerPod: 2 })
    residency.served('s1', 'a:1', 1)
    residency.served('s2', 'a:1', 1)
    residency.tokensByPod('s1')
    residency.served('s3', 'a:1', 1)
    expect(['s1', 's2', 's3'].map((key) => residency.tokensByPod(key).size)).toEqual([0, 1, 1])
  })

  test.each([
    { capacity: 1_000, sizes: [0, 400, 400] },
    { capacity: 2_000, sizes: [400, 400, 400] },
    { capacity: undefined, sizes: [400, 400, 400] },
    { capacity: Number.POSITIVE_INFINITY, sizes: [400, 400, 400] },
    { capacity: 100, sizes: [0, 0, 0] },
  ])('a pod with room for $capacity tokens holds $sizes', ({ capacity, sizes }) => {
    const residency = createSessionResidency({ maxSessionsPerPod: 100, podCapacityTokens: capacity })
    for (const key of ['s1', 's2', 's3']) residency.served(key, 'a:1', 400)
    expect(['s1', 's2', 's3'].map((key) => residency.tokensByPod(key).get('a:1') ?? 0)).toEqual(sizes)
  })

  test('a session can be forgotten, and a pod', () => {
    const residency = createSessionResidency({ maxSessionsPerPod: 10 })
    for (const key of ['s1', 's2']) for (const pod of ['a:1', 'b:1']) residency.served(key, pod, 5)
    residency.forget('s1')
    residency.forgetPod('b:1')
    expect(['s1', 's2'].map((key) => entries(residency.tokensByPod(key)))).toEqual([{}, { 'a:1': 5 }])
  })
})
