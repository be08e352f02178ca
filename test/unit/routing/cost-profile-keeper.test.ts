import { describe, expect, test } from '@jest/globals'
import { createCostProfile } from '../../../src/routing/cost-profile/cost-profile.ts'
import { createCostProfileKeeper } from '../../../src/routing/cost-profile/cost-profile-keeper.ts'
import type { CostProfileStore } from '../../../src/routing/cost-profile/cost-profile-store.ts'
import { createMemoryCostProfileStore } from '../../../src/routing/cost-profile/memory-cost-profile-store.ts'
import { eventually } from './eventually.ts'

const hourMs = 3_600_000

const keeperOf = (
  store: CostProfileStore,
  change: { readonly engine?: string; readonly saveIntervalMs?: number } = {},
) => {
  const profile = createCostProfile({ initialMsPerToken: 1 })
  const faults: string[] = []
  const keeper = createCostProfileKeeper({
    profile,
    store,
    engine: 'engine-1',
    saveIntervalMs: hourMs,
    onFault: (operation) => faults.push(operation),
    ...change,
  })
  return { profile, keeper, faults }
}

const learn = (profile: ReturnType<typeof createCostProfile>): void =>
  profile.observe('m', { tokens: 1_000, ttfbMs: 100 })

describe('a kept cost profile', () => {
  test('survives a restart', async () => {
    const store = createMemoryCostProfileStore()
    const before = keeperOf(store)
    await before.keeper.start()
    learn(before.profile)
    await before.keeper.stop()
    const after = keeperOf(store)
    await after.keeper.start()
    await after.keeper.stop()
    expect(after.profile.recomputeMs('m', 1_000)).toBeCloseTo(100)
    expect([...before.faults, ...after.faults]).toEqual([])
  })

  test('is saved while it runs', async () => {
    const saved: string[] = []
    const store: CostProfileStore = {
      load: async () => undefined,
      save: async (_engine, text) => {
        saved.push(text)
      },
    }
    const { profile, keeper } = keeperOf(store, { saveIntervalMs: 5 })
    await keeper.start()
    learn(profile)
    await eventually(() => expect(saved).toEqual([profile.toText()]))
    await keeper.stop()
  })

  test('says nothing about another kind of engine', async () => {
    const store = createMemoryCostProfileStore()
    const before = keeperOf(store)
    learn(before.profile)
    await before.keeper.stop()
    const other = keeperOf(store, { engine: 'engine-2' })
    await other.keeper.start()
    await other.keeper.stop()
    expect(other.profile.recomputeMs('m', 1_000)).toBe(1_000)
  })

  test('is not saved where nothing was learnt', async () => {
    const store = createMemoryCostProfileStore()
    const { keeper } = keeperOf(store)
    await keeper.start()
    await keeper.stop()
    expect(await store.load('engine-1')).toBeUndefined()
  })

  test('goes on without a store that answers', async () => {
    const away: CostProfileStore = {
      load: async () => Promise.reject(new Error('away')),
      save: async () => Promise.reject(new Error('away')),
    }
    const { profile, keeper, faults } = keeperOf(away)
    await keeper.start()
    learn(profile)
    await keeper.stop()
    expect(profile.recomputeMs('m', 1_000)).toBeCloseTo(100)
    expect(faults).toEqual(['load_costs', 'save_costs'])
  })

  test('starts anew from a text that cannot be read, and tells', async () => {
    const store = createMemoryCostProfileStore()
    await store.save('engine-1', 'nonsense')
    const { profile, keeper, faults } = keeperOf(store)
    await keeper.start()
    await keeper.stop()
    expect(profile.recomputeMs('m', 1_000)).toBe(1_000)
    expect(faults).toEqual(['load_costs'])
  })
})
