import type { CostProfileStore } from './cost-profile-store.ts'

/** Keeps costs for as long as the process lives. */
export const createMemoryCostProfileStore = (): CostProfileStore => {
  const texts = new Map<string, string>()
  return {
    load: async (engine) => texts.get(engine),
    save: async (engine, text) => {
      texts.set(engine, text)
    },
  }
}
