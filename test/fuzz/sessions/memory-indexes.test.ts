import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { DeadlineHeap } from '../../../src/sessions/memory/deadline-heap.ts'
import { EvictionOrder, evictionColumns } from '../../../src/sessions/memory/eviction-order.ts'
import { LinkedTable } from '../../../src/sessions/memory/linked-table.ts'
import { SequenceIndex } from '../../../src/sessions/memory/sequence-index.ts'
import { noSlot, SlotRows } from '../../../src/sessions/memory/slot-rows.ts'

/** Keys by deadline, looked through one by one. */
const earliestDue = (deadlines: Map<string, number>, nowMs: number): number | undefined => {
  const earliestMs = Math.min(...deadlines.values())
  return earliestMs <= nowMs ? earliestMs : undefined
}

describe('the indexes of the memory store', () => {
  test('the deadline heap does what a list of deadlines would', () => {
    const step = fc.record({
      name: fc.constantFrom('set', 'set', 'set', 'delete', 'take'),
      key: fc.nat({ max: 40 }).map(String),
      atMs: fc.nat({ max: 1000 }),
    })
    const property = fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const heap = new DeadlineHeap<string>()
      const plain = new Map<string, number>()
      const perform: Readonly<Record<string, (key: string, atMs: number) => void>> = {
        set: (key, atMs) => {
          heap.set(key, atMs)
          plain.set(key, atMs)
        },
        delete: (key) => {
          heap.delete(key)
          plain.delete(key)
        },
        take: (_key, atMs) => {
          const expectedMs = earliestDue(plain, atMs)
          const taken = heap.takeDue(atMs) ?? 'none'
          expect(plain.get(taken)).toBe(expectedMs)
          plain.delete(taken)
        },
      }
      for (const { name, key, atMs } of steps) perform[name]?.(key, atMs)
      expect(heap.size).toBe(plain.size)
    })
    fc.assert(property, { numRuns: 100 })
  })

  test('the linked table does what a map would whose entries move to the end', () => {
    const step = fc.record({
      name: fc.constantFrom('set', 'touch', 'delete'),
      key: fc.nat({ max: 10 }),
      value: fc.nat(),
    })
    const property = fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const table = new LinkedTable<number, number>()
      const plain = new Map<number, number>()
      const moveToEnd = (key: number, value: number): void => {
        plain.delete(key)
        plain.set(key, value)
      }
      const perform: Readonly<Record<string, (key: number, value: number) => void>> = {
        set: (key, value) => {
          table.set(key, value)
          moveToEnd(key, value)
        },
        touch: (key) => {
          table.touch(key)
          const known = plain.get(key)
          if (known !== undefined) moveToEnd(key, known)
        },
        delete: (key) => {
          table.delete(key)
          plain.delete(key)
        },
      }
      for (const { name, key, value } of steps) {
        perform[name]?.(key, value)
        const oldest = table.oldest()
        expect([oldest?.key, oldest?.value]).toEqual([...plain][0] ?? [undefined, undefined])
        expect([table.size, table.get(key)]).toEqual([plain.size, plain.get(key)])
      }
    })
    fc.assert(property, { numRuns: 100 })
  })

  test('the sequence index does what a sorted list would', () => {
    const step = fc.record({ name: fc.constantFrom('add', 'add', 'remove', 'walk'), at: fc.nat({ max: 200 }) })
    const property = fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const index = new SequenceIndex()
      const plain = new Map<number, number>()
      let sequence = 0
      const perform: Readonly<Record<string, (at: number) => void>> = {
        add: () => {
          sequence += 1
          index.add(sequence, 1000 - sequence)
          plain.set(sequence, 1000 - sequence)
        },
        remove: (at) => {
          index.remove(at)
          plain.delete(at)
        },
        walk: (at) => {
          const expected = [...plain].filter(([place]) => place < at).map(([, slot]) => slot)
          expect([...index.newestBelow(at)]).toEqual(expected.reverse())
        },
      }
      for (const { name, at } of steps) perform[name]?.(at)
      expect(index.size).toBe(plain.size)
    })
    fc.assert(property, { numRuns: 100 })
  })
  test('the eviction order picks the greatest of time since last use times bytes, to within a factor of two', () => {
    const step = fc.record({
      name: fc.constantFrom('set', 'set', 'set', 'hold', 'delete', 'advance', 'take'),
      key: fc.nat({ max: 30 }),
      bytes: fc.integer({ min: 1, max: 5000 }),
      time: fc.nat({ max: 50 }),
    })
    const property = fc.property(fc.array(step, { maxLength: 500, size: 'max' }), (steps) => {
      const rows = new SlotRows({ textLength: 0, numbers: evictionColumns })
      rows.reserve(0)
      const order = new EvictionOrder(rows, 0)
      const plain = new Map<number, { readonly bytes: number; readonly usedMs: number }>()
      let nowMs = 1_000
      const use = (key: number, bytes: number, usedMs: number): void => {
        order.put(key, { bytes, usedMs })
        plain.set(key, { bytes, usedMs })
      }
      const remove = (key: number): void => {
        order.delete(key)
        plain.delete(key)
      }
      const perform: Readonly<Record<string, (step: { key: number; bytes: number; time: number }) => void>> = {
        set: ({ key, bytes }) => use(key, bytes, nowMs),
        hold: ({ key, bytes, time }) => use(key, bytes, nowMs + time),
        delete: ({ key }) => remove(key),
        advance: ({ time }) => {
          nowMs += time
        },
        take: () => {
          const idle = [...plain].filter(([, { usedMs }]) => usedMs <= nowMs)
          const scores = new Map(idle.map(([key, { bytes, usedMs }]) => [key, (nowMs - usedMs) * bytes]))
          const victim = order.victim(nowMs)
          expect(victim === noSlot).toBe(idle.length === 0)
          expect(victim === noSlot || scores.has(victim)).toBe(true)
          expect(2 * (scores.get(victim) ?? 0)).toBeGreaterThanOrEqual(Math.max(0, ...scores.values()))
          remove(victim)
        },
      }
      for (const made of steps) perform[made.name]?.(made)
      expect(order.size).toBe(plain.size)
      expect(order.bytes).toBe([...plain.values()].reduce((sum, { bytes }) => sum + bytes, 0))
    })
    fc.assert(property, { numRuns: 300 })
  })
})
