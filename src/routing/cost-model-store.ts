import { z } from 'zod'
import { pause } from '../async/deadline.ts'
import { readJson } from '../json/read-json.ts'
import type { CostModel, ModelCosts } from './cost-model.ts'
import type { FitSums } from './linear-fit.ts'

/** Keeps a cost model over a restart: one text for each kind of engine. The last save wins. */
export interface CostModelStore {
  /**
   * The saved text of a kind of engine; undefined when there is none.
   *
   * @throws when the store does not answer
   */
  load(engine: string): Promise<string | undefined>
  /** @throws when the store does not answer */
  save(engine: string, text: string): Promise<void>
}

/** Keeps costs until the process ends. */
export const createMemoryCostModelStore = (): CostModelStore => {
  const texts = new Map<string, string>()
  return {
    load: async (engine) => texts.get(engine),
    save: async (engine, text) => void texts.set(engine, text),
  }
}

/** Restores a cost model at the start and saves it while it learns. */
export interface CostModelKeeper {
  /** Restores what was saved, then saves at each interval. Resolves after restoring; never rejects. */
  start(): Promise<void>
  /** Saves what is new. Never rejects. */
  stop(): Promise<void>
}

/** A store that fails does not affect turns: errors go to `onFault`, which must not throw. */
export const createCostModelKeeper = (options: {
  readonly model: CostModel
  readonly store: CostModelStore
  /** The kind of engine: costs of one kind do not apply to another. */
  readonly engine: string
  /** Time between two saves, milliseconds. Nothing is saved when nothing was learnt. */
  readonly saveIntervalMs: number
  readonly onFault: (operation: 'load_costs' | 'save_costs', error: unknown) => void
}): CostModelKeeper => {
  const { model, store, engine } = options
  const stopping = new AbortController()
  let savedRevision = 0
  let loop: Promise<void> | undefined

  const restore = async (): Promise<void> => {
    try {
      const text = await store.load(engine)
      if (text !== undefined) model.restore(decodeCosts(text))
    } catch (error) {
      options.onFault('load_costs', error)
    }
  }

  const saveNew = async (): Promise<void> => {
    const { revision } = model
    if (revision === savedRevision) return
    try {
      await store.save(engine, encodeCosts(model.snapshot()))
      savedRevision = revision
    } catch (error) {
      options.onFault('save_costs', error)
    }
  }

  const saveFromNowOn = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await pause(options.saveIntervalMs, stopping.signal)
      await saveNew()
    }
  }

  return {
    start: async () => {
      await restore()
      loop = saveFromNowOn()
    },
    stop: async () => {
      stopping.abort()
      // The loop saves once more before it ends.
      await (loop ?? saveNew())
    },
  }
}

/** The upper bound keeps the arithmetic from overflowing. */
const sum = z.number().min(0).max(1e150)
const sums = z
  .tuple([sum, sum, sum, sum, sum, sum])
  .transform(([count, weight, x, y, xx, xy]): FitSums => ({ count, weight, x, y, xx, xy }))
const savedCosts = z.object({
  version: z.literal(1),
  models: z.array(z.tuple([z.string(), sums, sums]).transform(([model, prefill, load]) => ({ model, prefill, load }))),
})

/** A text for {@link decodeCosts}. It names models, and contains nothing of turns. */
export const encodeCosts = (models: readonly ModelCosts[]): string =>
  JSON.stringify({
    version: 1,
    models: models.map(({ model, prefill, load }) => [model, numbersOf(prefill), numbersOf(load)]),
  })

/** @throws when the text has another version or is damaged */
export const decodeCosts = (text: string): readonly ModelCosts[] => {
  const { data } = savedCosts.safeParse(readJson(text))
  if (data === undefined) throw new Error('The saved costs are damaged or of another version')
  return data.models
}

const numbersOf = ({ count, weight, x, y, xx, xy }: FitSums): readonly number[] => [count, weight, x, y, xx, xy]
