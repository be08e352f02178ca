import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { DeadlineHeap } from '../../../src/sessions/memory/deadline-heap.ts'
import { SequenceIndex } from '../../../src/sessions/memory/sequence-index.ts'

describe('the indexes of the memory store', () => {
  test('the deadline heap does what a list of deadlines would', () => {
    const step = fc.record({
      name: fc.constantFrom('set', 'set', 'set', 'delete', 'take'),
      key: fc.nat({ max: 40 }),
      atMs: fc.nat({ max: 1000 }),
    })
    const property = fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const heap = new DeadlineHeap<number>()
      const plain = new Map<number, number>()
      for (const { name, key, atMs } of steps) {
        if (name === 'set') {
          heap.set(key, atMs)
          plain.set(key, atMs)
        } else if (name === 'delete') {
          heap.delete(key)
          plain.delete(key)
        } else {
          const earliestMs = Math.min(...plain.values())
          const taken = heap.takeDue(atMs)
          expect(taken === undefined ? undefined : plain.get(taken)).toBe(earliestMs <= atMs ? earliestMs : undefined)
          if (taken !== undefined) plain.delete(taken)
        }
        expect(heap.size).toBe(plain.size)
      }
    })
    fc.assert(property, { numRuns: 300 })
  })

  test('the sequence index does what a sorted list would', () => {
    const step = fc.record({ name: fc.constantFrom('add', 'add', 'remove', 'walk'), at: fc.nat({ max: 200 }) })
    const property = fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const index = new SequenceIndex<string>()
      const plain = new Map<number, string>()
      let sequence = 0
      for (const { name, at } of steps) {
        if (name === 'add') {
          sequence += 1
          index.add(sequence, `value-${sequence}`)
          plain.set(sequence, `value-${sequence}`)
        } else if (name === 'remove') {
          index.remove(at)
          plain.delete(at)
        } else {
          const expected = [...plain].filter(([place]) => place < at).map(([, value]) => value)
          expect([...index.newestBelow(at)]).toEqual(expected.reverse())
        }
        expect(index.size).toBe(plain.size)
      }
    })
    fc.assert(property, { numRuns: 300 })
  })
})
