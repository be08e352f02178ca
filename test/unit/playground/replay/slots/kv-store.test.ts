import { describe, expect, test } from '@jest/globals'
import { commonTokens, createKvStore, keptAfter } from '../../../../../playground/replay/slots/kv-store.ts'
import { traceRequest } from '../requests.ts'

describe('tokens that two prompts have in common', () => {
  const earlier = traceRequest([1, 2, 3], { inputTokens: 1_100 })

  test.each([
    { name: 'all of a prompt that goes on', later: traceRequest([1, 2, 4, 5]), are: 1_100 },
    { name: 'full blocks of one that goes on in another way', later: traceRequest([1, 6, 7]), are: 512 },
    { name: 'none of another prompt', later: traceRequest([8, 9]), are: 0 },
    { name: 'no more than the later one has', later: traceRequest([1, 2], { inputTokens: 1_030 }), are: 1_030 },
  ])('$name', ({ later, are }) => {
    expect(commonTokens(earlier, later)).toBe(are)
  })
})

describe('the store of KV', () => {
  const kept = (name: string) => keptAfter(name, traceRequest([1, 2], { outputTokens: 20 }))

  test('has what a conversation left last: its prompt and the answer', () => {
    const store = createKvStore({ maxBlocks: Number.POSITIVE_INFINITY })
    store.save('a', kept('turn-1'))
    store.save('a', kept('turn-2'))
    expect(store.find('a')).toMatchObject({ artefactId: 'turn-2', tokens: 1_044 })
    expect(store.find('b')).toBeUndefined()
  })

  test('without room forgets what was used longest ago', () => {
    const store = createKvStore({ maxBlocks: 6 })
    for (const name of ['a', 'b']) store.save(name, kept(name))
    store.find('a')
    store.save('c', kept('c'))
    expect(['a', 'b', 'c'].map((name) => store.find(name)?.artefactId)).toEqual(['a', undefined, 'c'])
  })

  test('of no blocks holds nothing', () => {
    const store = createKvStore({ maxBlocks: 0 })
    store.save('a', kept('a'))
    expect(store.find('a')).toBeUndefined()
  })
})
