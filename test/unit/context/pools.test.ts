import { describe, expect, jest, test } from '@jest/globals'
import { createPools, type Pool } from '../../../src/context/pools.ts'
import type { RemoveOutcome } from '../../../src/kvcache/kv-connector.ts'
import type { ModelService } from '../../../src/routing/served-models.ts'

interface Sketch {
  readonly serves?: ModelService
  readonly removes?: RemoveOutcome
  readonly sweeps?: () => Promise<void>
}

/** Pools named by their place, which only serve models and remove KV. */
const poolsOf = (...sketches: readonly [Sketch, ...Sketch[]]) => {
  const toPool = ({ serves = 'no', removes = { kind: 'removed' }, sweeps }: Sketch, index: number) =>
    ({ name: `${index}`, serves: () => serves, kv: { remove: async () => removes, sweep: sweeps } }) as unknown as Pool
  const [first, ...others] = sketches
  return createPools([toPool(first, 0), ...others.map((sketch, index) => toPool(sketch, index + 1))])
}

describe('forModel', () => {
  test.each<[string, readonly [Sketch, ...Sketch[]], string | undefined, string]>([
    ['the only pool, whatever it serves', [{}], 'm', '0'],
    ['the pool that lists the model', [{ serves: 'possible' }, { serves: 'listed' }], 'm', '1'],
    ['the first of those that list it', [{}, { serves: 'listed' }, { serves: 'listed' }], 'm', '1'],
    ['a pool that may serve it, when none lists it', [{}, { serves: 'possible' }], 'm', '1'],
    ['the first, whose router refuses it, when none serves it', [{}, {}], 'm', '0'],
    ['the first when the model is unknown', [{}, { serves: 'listed' }], undefined, '0'],
  ])('is %s', (_title, sketches, model, name) => {
    expect(poolsOf(...sketches).forModel(model).name).toBe(name)
  })
})

test('a sweep that fails in one pool does not prevent the others', async () => {
  const sweeps = jest.fn(() => Promise.reject(new Error('broken')))
  const artefacts = { known: async () => new Set<string>(), forget: async () => {} }
  const swept = poolsOf({ sweeps }, { sweeps }).sweep(artefacts, new AbortController().signal)
  await expect(swept).rejects.toThrow('broken')
  expect(sweeps).toHaveBeenCalledTimes(2)
})

describe('remove', () => {
  const busy = { kind: 'busy', reason: 'in use' } as const
  const removed = { kind: 'removed' } as const
  const foreign = { kind: 'foreign' } as const

  test.each<[string, readonly [RemoveOutcome, ...RemoveOutcome[]], RemoveOutcome]>([
    ['done when one pool knew the KV', [foreign, removed], removed],
    ['foreign when no pool knows the KV', [foreign, foreign], foreign],
    ['tried again when one pool is busy', [removed, busy], busy],
  ])('is %s', async (_title, [first, ...others], outcome) => {
    const pools = poolsOf({ removes: first }, ...others.map((removes) => ({ removes })))
    const removal = { kind: 'artefact', session: 's' as never, payload: 'p' } as const
    expect(await pools.remove(removal, new AbortController().signal)).toEqual(outcome)
  })
})
