import { LRUCache } from 'lru-cache'

/** How long computing a prefix takes, learnt from turns that ran. */
export interface PrefillEstimate {
  /** Milliseconds that `tokens` would take to compute on an engine that serves `model`. */
  recomputeMs(model: string, tokens: number): number
  /** A turn computed `tokens` prompt tokens and sent its first byte after `firstByteMs`. Short prompts say too little and are left out. */
  observe(model: string, observation: { readonly tokens: number; readonly firstByteMs: number }): void
}

const minTokens = 128
const weightOfNewest = 0.2

/** An exponential average per model, in this process; `initialMsPerToken` serves until the first long turn was seen. At most 1,000 models are remembered. */
export const createPrefillEstimate = (initialMsPerToken: number): PrefillEstimate => {
  const msPerToken = new LRUCache<string, number>({ max: 1000 })
  return {
    recomputeMs: (model, tokens) => tokens * (msPerToken.get(model) ?? initialMsPerToken),
    observe: (model, { tokens, firstByteMs }) => {
      if (tokens < minTokens || firstByteMs <= 0) return
      const seen = firstByteMs / tokens
      const before = msPerToken.get(model)
      msPerToken.set(model, before === undefined ? seen : before + weightOfNewest * (seen - before))
    },
  }
}
