import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { hashOfId, SlotMap } from '../../../src/collections/slot-map.ts'

type Step = { readonly kind: 'set' | 'delete'; readonly key: number } | { readonly kind: 'delete-oldest' }

const anyKey = fc.oneof(fc.nat(12), fc.nat(400))
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('set', 'set', 'set', 'delete'), key: anyKey }),
  fc.constant<Step>({ kind: 'delete-oldest' }),
)

/** Good hashes, and bad ones that make every search a long one. */
const hashes = [
  { name: 'different hashes', hashOf: (key: number) => key },
  { name: 'few hashes', hashOf: (key: number) => key % 3 },
  { name: 'one hash', hashOf: () => -7 },
]

const entriesOf = (map: SlotMap<number, number>): readonly number[] => {
  const values: number[] = []
  map.forEach((value) => void values.push(value))
  return values
}

describe('a slot map', () => {
  test.each(hashes)('holds what a list would: $name', ({ hashOf }) => {
    const bound = fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined })
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 300 }), bound, (steps, maxEntries) => {
        const map = new SlotMap<number, number>({ hashOf, ...(maxEntries === undefined ? {} : { maxEntries }) })
        let list: readonly (readonly [key: number, value: number])[] = []
        for (const [index, step] of steps.entries()) {
          if (step.kind === 'delete-oldest') {
            expect(map.deleteOldest()).toBe(list[0]?.[1])
            list = list.slice(1)
            continue
          }
          const before = list.find(([key]) => key === step.key)?.[1]
          expect(map.get(step.key)).toBe(before)
          expect(map.has(step.key)).toBe(before !== undefined)
          list = list.filter(([key]) => key !== step.key)
          if (step.kind === 'delete') {
            expect(map.delete(step.key)).toBe(before)
            continue
          }
          map.set(step.key, index)
          list = [...list, [step.key, index] as const].slice(-(maxEntries ?? Number.POSITIVE_INFINITY))
        }
        expect(entriesOf(map)).toEqual(list.map(([, value]) => value))
        expect(map.size).toBe(list.length)
        expect(map.oldest).toBe(list[0]?.[1])
      }),
    )
  })

  test('keeps nothing of what was deleted', () => {
    const map = new SlotMap<string, object>({ hashOf: hashOfId })
    map.set('a', {})
    map.delete('a')
    expect(map.get('a')).toBeUndefined()
    expect(map.size).toBe(0)
    expect(map.oldest).toBeUndefined()
  })
})

describe('hashes of ids', () => {
  test.each([
    { name: 'ids', id: (index: number) => `${String(index * 7919).padStart(16, 'x')}` },
    { name: 'ids that begin alike', id: (index: number) => `the same beginning of all of them ${index}` },
    { name: 'short ids', id: String },
  ])('spread: $name', ({ id }) => {
    const buckets = new Set(Array.from({ length: 1024 }, (_, index) => hashOfId(id(index)) & 1023))
    expect(buckets.size).toBeGreaterThan(300)
  })

  test('of nothing', () => {
    expect(Number.isInteger(hashOfId(''))).toBe(true)
  })
})
