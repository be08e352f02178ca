import { expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import { type CostModelStore, createCostModelKeeper, encodeCosts } from '../../../src/routing/cost-model-store.ts'
import { eventually } from '../../support/eventually.ts'

const createMemoryStore = (): CostModelStore => {
  const texts = new Map<string, string>()
  return { load: async (engine) => texts.get(engine), save: async (engine, text) => void texts.set(engine, text) }
}

const setUp = (store: CostModelStore, change: { readonly engine?: string; readonly saveIntervalMs?: number } = {}) => {
  const model = createCostModel({ initialMsPerToken: 1 })
  const faults: string[] = []
  const keeper = createCostModelKeeper({
    model,
    store,
    engine: 'engine-1',
    saveIntervalMs: 3_600_000,
    onFault: (operation) => faults.push(operation),
    ...change,
  })
  return { model, keeper, faults, learn: () => model.observe('m', { tokens: 1_000, ttfbMs: 100 }) }
}

/** What a process predicts that starts with the store. */
const predictedAfterStart = async (store: CostModelStore, engine = 'engine-1'): Promise<number> => {
  const { model, keeper } = setUp(store, { engine })
  await keeper.start()
  await keeper.stop()
  return model.recomputeMs('m', 1_000)
}

test('restores the costs of the same kind of engine after a restart, not of another', async () => {
  const store = createMemoryStore()
  const { keeper, faults, learn } = setUp(store)
  await keeper.start()
  learn()
  await keeper.stop()
  expect(await predictedAfterStart(store)).toBeCloseTo(100)
  expect(await predictedAfterStart(store, 'engine-2')).toBe(1_000)
  expect(faults).toEqual([])
})

test('saves at each interval what is new', async () => {
  const saved: string[] = []
  const store: CostModelStore = {
    load: async () => undefined,
    save: async (_engine, text) => void saved.push(text),
  }
  const { model, keeper, learn } = setUp(store, { saveIntervalMs: 5 })
  await keeper.start()
  learn()
  await eventually(() => expect(saved).toEqual([encodeCosts(model.snapshot())]))
  await keeper.stop()
  expect(saved).toHaveLength(1)
})

test('saves nothing when nothing was learnt', async () => {
  const store = createMemoryStore()
  await predictedAfterStart(store)
  expect(await store.load('engine-1')).toBeUndefined()
})

test('reports a store that is unavailable, and the model learns on', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('unavailable'))
  const { model, keeper, faults, learn } = setUp({ load: fail, save: fail })
  await keeper.start()
  learn()
  await keeper.stop()
  expect(model.recomputeMs('m', 1_000)).toBeCloseTo(100)
  expect(faults).toEqual(['load_costs', 'save_costs'])
})

test('reports a damaged text, and starts with the defaults', async () => {
  const store = createMemoryStore()
  await store.save('engine-1', 'nonsense')
  const { model, keeper, faults } = setUp(store)
  await keeper.start()
  await keeper.stop()
  expect(model.recomputeMs('m', 1_000)).toBe(1_000)
  expect(faults).toEqual(['load_costs'])
})
