import { beforeEach, describe, expect, test } from '@jest/globals'
import { EvictionOrder, evictionColumns } from '../../../src/sessions/memory/eviction-order.ts'
import { SlotRows } from '../../../src/sessions/memory/slot-rows.ts'

describe('what goes first when room is needed', () => {
  let order: EvictionOrder
  let names: string[]
  beforeEach(() => {
    const rows = new SlotRows({ textLength: 0, numbers: evictionColumns })
    rows.reserve(0)
    order = new EvictionOrder(rows, 0)
    names = []
  })
  const slotOf = (name: string): number => {
    if (!names.includes(name)) names.push(name)
    return names.indexOf(name)
  }
  const add = (name: string, bytes: number, usedMs: number): void => order.put(slotOf(name), { bytes, usedMs })
  /** Undefined: nothing can go. */
  const victim = (nowMs: number): string | undefined => names[order.victim(nowMs)]

  test.each([
    {
      name: 'of equal sizes, the least recently used',
      entries: [
        ['young', 100, 20],
        ['old', 100, 10],
      ],
      victim: 'old',
    },
    {
      name: 'of equal times, the largest',
      entries: [
        ['small', 100, 10],
        ['large', 1000, 10],
      ],
      victim: 'large',
    },
    {
      name: 'a large one before a small one idle for a little longer',
      entries: [
        ['small', 100, 10],
        ['large', 1000, 50],
      ],
      victim: 'large',
    },
    {
      name: 'a small one idle for very long before a large one',
      entries: [
        ['small', 100, 0],
        ['large', 1000, 95],
      ],
      victim: 'small',
    },
    {
      name: 'of those used in the same millisecond, the first',
      entries: [
        ['first', 100, 10],
        ['second', 100, 10],
      ],
      victim: 'first',
    },
    {
      name: 'nothing that is in use',
      entries: [
        ['held', 1000, 101],
        ['idle', 1, 99],
      ],
      victim: 'idle',
    },
  ] as const)('$name', ({ entries, victim: expected }) => {
    for (const [name, bytes, usedMs] of entries) add(name, bytes, usedMs)
    expect(victim(100)).toBe(expected)
  })

  test('nothing, when there is nothing or all are in use', () => {
    expect(victim(100)).toBeUndefined()
    add('held', 10, 200)
    expect(victim(100)).toBeUndefined()
    expect(victim(200)).toBe('held')
  })

  test('an entry that was used again waits for its turn', () => {
    add('a', 100, 10)
    add('b', 100, 20)
    add('a', 100, 30)
    expect(victim(100)).toBe('b')
  })

  test('an entry whose use ended early does not count as in use any more', () => {
    add('a', 100, 10)
    add('a', 100, 500)
    expect(victim(100)).toBeUndefined()
    add('a', 100, 60)
    add('b', 100, 70)
    expect(victim(100)).toBe('a')
  })

  test('sizes are added up, and follow entries that grow, shrink and go', () => {
    add('a', 100, 10)
    add('b', 50, 10)
    add('a', 5000, 20)
    expect([order.size, order.bytes]).toEqual([2, 5050])
    order.delete(slotOf('a'))
    order.delete(slotOf('a'))
    order.delete(slotOf('never there'))
    expect([order.size, order.bytes]).toEqual([1, 50])
    expect(victim(100)).toBe('b')
    add('a', 70, 10)
    expect([order.size, order.bytes]).toEqual([2, 120])
  })
})
