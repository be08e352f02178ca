import { describe, expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import {
  type CostModelStore,
  createCostModelKeeper,
  createMemoryCostModelStore,
  encodeCosts,
} from '../../../src/routing/cost-model-store.ts'
import { eventually } from '../../support/eventually.ts'

const hourMs = 3_600_000

const keeperOf = (
  store: CostModelStore,
  change: { readonly engine?: string; readonly saveIntervalMs?: number } = {},
) => {
  const model = createCostModel({ initialMsPerToken: 1 })
  const faults: string[] = []
  const keeper = createCostModelKeeper({
    model,
    store,
    engine: 'engine-1',
    saveIntervalMs: hourMs,
    onFault: (operation) => faults.push(operation),
    ...change,
  })
  return { model, keeper, faults }
}

const learn = (model: ReturnType<typeof createCostModel>): void => model.observe('m', { tokens: 1_000, ttfbMs: 100 })

describe('createCostModelKeeper', () => {
  test('survives a restart', async () => {
    const store = createMemoryCostModelStore()
    const before = keeperOf(store)
    await before.keeper.start()
    learn(before.model)
    await before.keeper.stop()
    const after = keeperOf(store)
    await after.keeper.start()
    await after.keeper.stop()
    expect(after.model.recomputeMs('m', 1_000)).toBeCloseTo(100)
    expect([...before.faults, ...after.faults]).toEqual([])
  })

  test('is saved while it runs', async () => {
    const saved: string[] = []
    const store: CostModelStore = {
      load: async () => undefined,
      save: async (_engine, text) => {
        saved.push(text)
      },
    }
    const { model, keeper } = keeperOf(store, { saveIntervalMs: 5 })
    await keeper.start()
    learn(model)
    await eventually(() => expect(saved).toEqual([encodeCosts(model.snapshot())]))
    await keeper.stop()
  })

  test('has no effect on another kind of engine', async () => {
    const store = createMemoryCostModelStore()
    const before = keeperOf(store)
    learn(before.model)
    await before.keeper.stop()
    const other = keeperOf(store, { engine: 'engine-2' })
    await other.keeper.start()
    await other.keeper.stop()
    expect(other.model.recomputeMs('m', 1_000)).toBe(1_000)
  })

  test('is not saved where nothing was learnt', async () => {
    const store = createMemoryCostModelStore()
    const { keeper } = keeperOf(store)
    await keeper.start()
    await keeper.stop()
    expect(await store.load('engine-1')).toBeUndefined()
  })

  test('learns while the store is unavailable', async () => {
    const away: CostModelStore = {
      load: async () => Promise.reject(new Error('away')),
      save: async () => Promise.reject(new Error('away')),
    }
    const { model, keeper, faults } = keeperOf(away)
    await keeper.start()
    learn(model)
    await keeper.stop()
    expect(model.recomputeMs('m', 1_000)).toBeCloseTo(100)
    expect(faults).toEqual(['load_costs', 'save_costs'])
  })

  test('starts with the defaults and reports a damaged text', async () => {
    const store = createMemoryCostModelStore()
    await store.save('engine-1', 'nonsense')
    const { model, keeper, faults } = keeperOf(store)
    await keeper.start()
    await keeper.stop()
    expect(model.recomputeMs('m', 1_000)).toBe(1_000)
    expect(faults).toEqual(['load_costs'])
  })
})
