import { LRUCache } from 'lru-cache'
import { type CostLine, type FitSums, LinearFit } from './linear-fit.ts'

/** Predicts the cost of having a prefix's KV in a pod. Synchronous and cheap: it is called for every pod on every turn. */
export interface CostEstimate {
  /** Milliseconds that an engine needs to compute `tokens` of a prompt; 0 for none. */
  recomputeMs(model: string, tokens: number): number
  /** Milliseconds that the model's average turn computes. Never 0. */
  typicalPrefillMs(model: string): number
  /** Milliseconds to load `bytes` of KV from the persistent store into a pod; 0 for none. */
  loadMs(model: string, bytes: number): number
}

/** The costs of one kind of engine per model, learnt from completed turns. */
export interface CostModel extends CostEstimate {
  /** A turn that did not wait computed `tokens` prompt tokens and sent its first byte after `ttfbMs`. Prompts below 128 tokens are ignored. */
  observe(model: string, observation: { readonly tokens: number; readonly ttfbMs: number }): void
  /** A load of `bytes` of KV took `loadMs`. Loads below 64 KiB are ignored. */
  observeLoad(model: string, observation: { readonly bytes: number; readonly loadMs: number }): void
  /** Increases with every observation: tells whether there is something new to save. */
  readonly revision: number
  /** All that was learnt, model by model, the least recently used first. */
  snapshot(): readonly ModelCosts[]
  /** Adds what an earlier process learnt, except of models that this one has observed itself. */
  restore(models: readonly ModelCosts[]): void
}

/** What was learnt of one model. */
export interface ModelCosts {
  readonly model: string
  readonly prefill: FitSums
  readonly load: FitSums
}

/** A stored prefix, and how many of its tokens a pod already holds. */
export interface PossibleLoad {
  readonly model: string
  readonly stored: { readonly tokens: number; readonly bytes: number }
  readonly residentTokens: number
}

/** Milliseconds to load what the pod lacks; undefined where it lacks nothing or computes it sooner, so that nothing is loaded. */
export const worthwhileLoadMs = (costs: CostEstimate, load: PossibleLoad): number | undefined => {
  const { model, stored } = load
  const missing = stored.tokens - load.residentTokens
  if (missing <= 0) return undefined
  const loadMs = costs.loadMs(model, (stored.bytes * missing) / stored.tokens)
  return loadMs < costs.recomputeMs(model, missing) ? loadMs : undefined
}

const maxModels = 1000
/** Tokens of the average turn, until turns were observed. */
const typicalTokens = 1024
const minTokens = 128
const minBytes = 65_536
/** Larger numbers are mistakes: no prompt, artefact or wait is that long. */
const mostUnits = 1e15
const mostMs = 1e9

interface Fits {
  readonly prefill: LinearFit
  readonly load: LinearFit
}

export const createCostModel = (options: {
  /** Milliseconds to compute one token, until turns were observed. */
  readonly initialMsPerToken: number
  /** Milliseconds to load one byte, until loads were observed. Default: 1 GB per second, a fast network disk. */
  readonly initialMsPerByte?: number
  /** Fixed milliseconds of a load, until loads were observed. Default 20. */
  readonly initialLoadMs?: number
}): CostModel => {
  const initialPrefill: CostLine = { fixed: 0, perUnit: options.initialMsPerToken }
  const initialLoad: CostLine = { fixed: options.initialLoadMs ?? 20, perUnit: options.initialMsPerByte ?? 1e-6 }
  const createFits = (learnt?: ModelCosts): Fits => ({
    prefill: new LinearFit(initialPrefill, learnt?.prefill),
    load: new LinearFit(initialLoad, learnt?.load),
  })
  const models = new LRUCache<string, Fits>({ max: maxModels })
  const unknown = createFits()
  let revision = 0

  const known = (model: string): Fits => models.get(model) ?? unknown

  const learn = (model: string, part: keyof Fits, units: number, tookMs: number): void => {
    if (!(units <= mostUnits && tookMs > 0 && tookMs <= mostMs)) return
    const fits = models.get(model) ?? createFits()
    models.set(model, fits)
    fits[part].observe(units, tookMs)
    revision += 1
  }

  return {
    recomputeMs: (model, tokens) => known(model).prefill.at(tokens),
    typicalPrefillMs: (model) => {
      const { prefill } = known(model)
      return Math.max(1, prefill.mean ?? prefill.at(typicalTokens))
    },
    loadMs: (model, bytes) => known(model).load.at(bytes),
    observe: (model, { tokens, ttfbMs }) => {
      if (tokens >= minTokens) learn(model, 'prefill', tokens, ttfbMs)
    },
    observeLoad: (model, { bytes, loadMs }) => {
      if (bytes >= minBytes) learn(model, 'load', bytes, loadMs)
    },
    get revision() {
      return revision
    },
    snapshot: () => {
      const learnt: ModelCosts[] = []
      models.rforEach(({ prefill, load }, model) => {
        learnt.push({ model, prefill: prefill.sums, load: load.sums })
      })
      return learnt
    },
    restore: (restored) => {
      for (const costs of restored) if (!models.has(costs.model)) models.set(costs.model, createFits(costs))
    },
  }
}
