import { z } from 'zod'
import { createLoop } from '../async/loop.ts'
import { readJson } from '../json/read-json.ts'
import type { CostModel, ModelCosts } from './cost-model.ts'

/** Keeps a cost model over a restart: one text for each kind of engine. The last save wins. */
export interface CostModelStore {
  /** The saved text of a kind of engine; undefined when there is none. @throws when the store does not answer */
  load(engine: string): Promise<string | undefined>
  /** @throws when the store does not answer */
  save(engine: string, text: string): Promise<void>
}

/** Restores a cost model at the start and saves it while it learns. Faults of the store go to `onFault` alone. */
export const createCostModelKeeper = (options: {
  readonly model: CostModel
  readonly store: CostModelStore
  /** The kind of engine: costs of one kind do not apply to another. */
  readonly engine: string
  /** Time between two saves, milliseconds. Nothing is saved when nothing was learnt. */
  readonly saveIntervalMs: number
  readonly onFault: (operation: 'load_costs' | 'save_costs', error: unknown) => void
}) => {
  const { model, store, engine } = options
  let savedRevision = 0

  const restore = async (): Promise<void> => {
    const text = await store.load(engine)
    if (text !== undefined) model.restore(decodeCosts(text))
  }

  const saveNew = async (): Promise<void> => {
    const { revision } = model
    if (revision === savedRevision) return
    await store.save(engine, encodeCosts(model.snapshot()))
    savedRevision = revision
  }

  const tryToSave = () => saveNew().catch((error: unknown) => options.onFault('save_costs', error))
  const loop = createLoop({ work: tryToSave, intervalMs: options.saveIntervalMs })
  return {
    /** Restores what was saved, then saves at each interval. Resolves after restoring; never rejects. */
    start: async (): Promise<void> => {
      await restore().catch((error: unknown) => options.onFault('load_costs', error))
      await loop.start()
    },
    /** Saves what is new. Never rejects. */
    stop: async (): Promise<void> => {
      await loop.stop()
      await tryToSave()
    },
  }
}

/** The upper bound keeps the arithmetic from overflowing. */
const sum = z.number().min(0).max(1e150)
const sums = z.object({ count: sum, weight: sum, x: sum, y: sum, xx: sum, xy: sum })
const savedCosts = z.object({
  version: z.literal(2),
  models: z.array(z.object({ model: z.string(), prefill: sums, load: sums })),
})

/** A thousand models. Read once, at start. */
const maxSavedLength = 8_000_000

/** A text for {@link decodeCosts}. It names models, and contains nothing of turns. */
export const encodeCosts = (models: readonly ModelCosts[]): string => JSON.stringify({ version: 2, models })

/** @throws when the text has another version or is damaged */
export const decodeCosts = (text: string): readonly ModelCosts[] => {
  const { data } = savedCosts.safeParse(readJson(text, maxSavedLength))
  if (data === undefined) throw new Error('The saved costs are damaged or of another version')
  return data.models
}
