import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { BoundedMap } from '../../../src/routing/bounded-map.ts'

type Step = { readonly kind: 'set' | 'delete'; readonly key: number }

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('set', 'set', 'set', 'delete'),
  key: fc.nat(12),
})

describe('a bounded map', () => {
  test('holds what a list would that drops what was set longest ago', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 200 }), fc.integer({ min: 1, max: 6 }), (steps, maxEntries) => {
        const map = new BoundedMap<number, number>(maxEntries)
        let list: readonly (readonly [number, number])[] = []
        for (const [index, { kind, key }] of steps.entries()) {
          list = list.filter(([other]) => other !== key)
          if (kind === 'set') {
            map.set(key, index)
            list = [...list, [key, index] as const].slice(-maxEntries)
          } else {
            map.delete(key)
          }
          const expected = new Map(list)
          for (let any = 0; any <= 12; any += 1) expect(map.get(any)).toBe(expected.get(any))
        }
      }),
    )
  })
})
