import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  type CachedResponse,
  createMemoryResponseCache,
  entryBytes,
} from '../../../src/responsecache/response-cache.ts'
import { type ResponseKey, responseKeyOf } from '../../../src/responsecache/response-key.ts'

const keyOf = (name: number): ResponseKey =>
  responseKeyOf({ tenant: 't', model: 'm', path: '/v1/completions', form: 'json', canonicalBody: `{"a":${name}}` })

const responseOf = (bytes: number, seed: number): CachedResponse => ({
  contentType: 'application/json',
  body: Buffer.alloc(bytes, String(seed)),
  usage: undefined,
})

type Act =
  | { readonly kind: 'keep'; readonly name: number; readonly bytes: number; readonly seed: number }
  | { readonly kind: 'look'; readonly name: number }

const anyAct: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constant('keep' as const),
    name: fc.nat(12),
    bytes: fc.nat(3000),
    seed: fc.nat(9),
  }),
  fc.record({ kind: fc.constant('look' as const), name: fc.nat(12) }),
)

/** What a cache should do, in the plainest way: a list, the least recently used first. */
const createModel = (maxBytes: number, maxEntryBytes: number) => {
  let entries: { readonly name: number; readonly response: CachedResponse; readonly bytes: number }[] = []
  let evicted = 0
  const bytes = (): number => entries.reduce((sum, entry) => sum + entry.bytes, 0)
  return {
    keep: (name: number, response: CachedResponse): boolean => {
      const size = entryBytes(keyOf(name), response)
      if (size > Math.min(maxBytes, maxEntryBytes)) return false
      entries = [...entries.filter((entry) => entry.name !== name), { name, response, bytes: size }]
      while (bytes() > maxBytes) {
        entries.shift()
        evicted += 1
      }
      return true
    },
    look: (name: number): CachedResponse | undefined => {
      const found = entries.find((entry) => entry.name === name)
      if (found !== undefined) entries = [...entries.filter((entry) => entry !== found), found]
      return found?.response
    },
    size: () => ({ entries: entries.length, bytes: bytes() }),
    evicted: () => evicted,
  }
}

test('cache behaves like a list in the order of use, and never exceeds maxBytes', () => {
  fc.assert(
    fc.property(
      fc.array(anyAct, { maxLength: 120 }),
      fc.integer({ min: 1, max: 12_000 }),
      fc.integer({ min: 1, max: 4000 }),
      (acts, maxBytes, maxEntryBytes) => {
        let evicted = 0
        const cache = createMemoryResponseCache({
          maxBytes,
          maxEntryBytes,
          onEvicted: () => {
            evicted += 1
          },
        })
        const model = createModel(maxBytes, maxEntryBytes)
        for (const act of acts) {
          const seen =
            act.kind === 'keep'
              ? [
                  cache.keep(keyOf(act.name), responseOf(act.bytes, act.seed)),
                  model.keep(act.name, responseOf(act.bytes, act.seed)),
                ]
              : [cache.lookUp(keyOf(act.name)), model.look(act.name)]
          expect(seen[0]).toEqual(seen[1])
          expect(cache.size()).toEqual(model.size())
          expect(cache.size().bytes).toBeLessThanOrEqual(maxBytes)
        }
        expect(evicted).toBe(model.evicted())
      },
    ),
    { numRuns: 500 },
  )
})
