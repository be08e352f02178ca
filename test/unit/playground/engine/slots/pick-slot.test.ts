import { describe, expect, test } from '@jest/globals'
import { type IdleSlot, pickSlot, reuseThreshold } from '../../../../../playground/engine/slots/pick-slot.ts'

const idle = (id: number, change: Partial<IdleSlot> = {}): IdleSlot => ({
  id,
  tokens: [],
  saltHash: '',
  lastTaskId: -1,
  ...change,
})
const prompt = [1, 2, 3, 4, 5, 6, 7, 8]

describe('pickSlot', () => {
  test.each([
    ['takes the only one', [idle(2)], 2],
    [
      'takes the one unused for longest',
      [idle(0, { lastTaskId: 7 }), idle(1, { lastTaskId: 3 }), idle(2, { lastTaskId: 5 })],
      1,
    ],
    ['takes a fresh one before a used one', [idle(0, { lastTaskId: 0 }), idle(1)], 1],
    [
      'takes the longest prefix',
      [idle(0, { tokens: [1, 2, 3, 4] }), idle(1, { tokens: [1, 2, 3, 4, 5], lastTaskId: 9 })],
      1,
    ],
    ['compares prefixes, not contents', [idle(0, { tokens: [9, 2, 3, 4, 5, 6, 7, 8], lastTaskId: 1 }), idle(1)], 1],
    ['leaves a slot with too little in common', [idle(0, { tokens: [1, 2, 3, 9], lastTaskId: 4 }), idle(1)], 1],
    ['leaves a slot of another salt', [idle(0, { tokens: prompt, saltHash: 'aa', lastTaskId: 4 }), idle(1)], 1],
  ])('%s', (_, slots, expected) => {
    expect(pickSlot(slots, { tokens: prompt, saltHash: '' })).toBe(expected)
  })

  test('finds the prefix under its salt', () => {
    const slots = [idle(0), idle(1, { tokens: prompt, saltHash: 'aa', lastTaskId: 4 })]
    expect(pickSlot(slots, { tokens: prompt, saltHash: 'aa' })).toBe(1)
  })

  test('reuses from the threshold on', () => {
    const enough = prompt.slice(0, prompt.length * reuseThreshold)
    expect(pickSlot([idle(0, { tokens: enough, lastTaskId: 4 }), idle(1)], { tokens: prompt, saltHash: '' })).toBe(0)
    expect(
      pickSlot([idle(0, { tokens: enough.slice(1), lastTaskId: 4 }), idle(1)], { tokens: prompt, saltHash: '' }),
    ).toBe(1)
  })

  test('has nothing to take where none is idle', () => {
    expect(pickSlot([], { tokens: prompt, saltHash: '' })).toBeUndefined()
  })
})
