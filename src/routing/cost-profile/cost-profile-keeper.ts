import { pause } from '../pause.ts'
import type { CostProfile } from './cost-profile.ts'
import type { CostProfileStore } from './cost-profile-store.ts'

/** Carries a cost profile over restarts. */
export interface CostProfileKeeper {
  /** Restores what was saved, then saves from time to time. Resolves after the first; never rejects. */
  start(): Promise<void>
  /** Saves what is new. Never rejects. */
  stop(): Promise<void>
}

/** A store that does not answer costs nothing but the memory: faults are told to `onFault`, which must not throw, and forgotten. */
export const createCostProfileKeeper = (options: {
  readonly profile: CostProfile
  readonly store: CostProfileStore
  /** The kind of engine: what is learnt of one says nothing about another. */
  readonly engine: string
  /** From one save to the next, milliseconds. Nothing is saved where nothing was learnt. */
  readonly saveIntervalMs: number
  readonly onFault: (operation: 'load_costs' | 'save_costs', error: unknown) => void
}): CostProfileKeeper => {
  const { profile, store, engine } = options
  const stopping = new AbortController()
  let savedRevision = 0
  let loop: Promise<void> | undefined

  const restore = async (): Promise<void> => {
    try {
      const text = await store.load(engine)
      if (text !== undefined && !profile.restore(text)) {
        options.onFault('load_costs', new Error('The saved costs cannot be read'))
      }
    } catch (error) {
      options.onFault('load_costs', error)
    }
  }

  const saveNews = async (): Promise<void> => {
    const { revision } = profile
    if (revision === savedRevision) return
    try {
      await store.save(engine, profile.toText())
      savedRevision = revision
    } catch (error) {
      options.onFault('save_costs', error)
    }
  }

  const saveFromNowOn = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await pause(options.saveIntervalMs, stopping.signal)
      await saveNews()
    }
  }

  return {
    start: async () => {
      await restore()
      loop = saveFromNowOn()
    },
    stop: async () => {
      stopping.abort()
      // The loop saves once more on its way out.
      await (loop ?? saveNews())
    },
  }
}
