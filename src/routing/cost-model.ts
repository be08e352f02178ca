import { LRUCache } from 'lru-cache'
import type { StoredPrefix } from './router.ts'

/** Predicts the cost of having a prefix's KV in a pod. Synchronous and cheap: called for every pod on every turn. */
export interface CostEstimate {
  /** Milliseconds that an engine needs to compute `tokens` of a prompt; 0 for none. */
  recomputeMs(model: string, tokens: number): number
  /** Milliseconds that the model's average turn computes. Never 0. */
  typicalPrefillMs(model: string): number
  /** Milliseconds to load `bytes` of KV from the persistent store into a pod; 0 for none. */
  loadMs(model: string, bytes: number): number
}

/** What was learnt of one model. */
export interface ModelCosts {
  readonly model: string
  readonly prefill: FitSums
  readonly load: FitSums
}

/** Weighted and faded sums over observations; `count` is how many there were in all. */
export interface FitSums {
  readonly count: number
  readonly weight: number
  readonly x: number
  readonly y: number
  readonly xx: number
  readonly xy: number
}

const noSums: FitSums = { count: 0, weight: 0, x: 0, y: 0, xx: 0, xy: 0 }

/** `fixed + perUnit * units`, milliseconds; neither part is negative. */
interface CostLine {
  readonly fixed: number
  readonly perUnit: number
}

/** A line through observations, and the line before there were any. */
interface Fit {
  readonly initial: CostLine
  readonly sums: FitSums
  readonly line: CostLine
}

interface Fits {
  readonly prefill: Fit
  readonly load: Fit
}

/** Milliseconds to load what a pod lacks of a stored prefix; undefined: it lacks nothing, or computes it sooner. */
export const worthwhileLoadMs = (
  costs: CostEstimate,
  load: { readonly model: string; readonly stored: StoredPrefix; readonly residentTokens: number },
): number | undefined => {
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

/** The costs of one kind of engine per model, learnt from completed turns. */
export interface CostModel extends CostEstimate {
  /** A turn that did not wait computed `tokens`, first byte after `ttfbMs`. Prompts below 128 tokens are ignored. */
  observe(model: string, turn: { readonly tokens: number; readonly ttfbMs: number }): void
  /** A load of `bytes` of KV took `loadMs`. Loads below 64 KiB are ignored. */
  observeLoad(model: string, load: { readonly bytes: number; readonly loadMs: number }): void
  /** Increases with every observation: tells whether there is something new to save. */
  readonly revision: number
  /** All that was learnt, model by model, the least recently used first. */
  snapshot(): readonly ModelCosts[]
  /** Adds what an earlier process learnt, except of models that this one has observed itself. */
  restore(restored: readonly ModelCosts[]): void
}

export const createCostModel = (options: {
  /** Milliseconds to compute one token, until turns were observed. */
  readonly initialMsPerToken: number
  /** Milliseconds to load one byte, until loads were observed. Default: 1 GB per second, a fast network disk. */
  readonly initialMsPerByte?: number
  /** Fixed milliseconds of a load, until loads were observed. Default 20. */
  readonly initialLoadMs?: number
}): CostModel => {
  const { initialMsPerToken, initialMsPerByte = 1e-6, initialLoadMs = 20 } = options
  const createFits = (learnt?: ModelCosts): Fits => ({
    prefill: fitOf({ fixed: 0, perUnit: initialMsPerToken }, learnt?.prefill),
    load: fitOf({ fixed: initialLoadMs, perUnit: initialMsPerByte }, learnt?.load),
  })
  const models = new LRUCache<string, Fits>({ max: maxModels })
  const unknown = createFits()
  let revision = 0

  const known = (model: string): Fits => models.get(model) ?? unknown

  const learn = (model: string, part: keyof Fits, units: number, tookMs: number): void => {
    if (!(units <= mostUnits && tookMs > 0 && tookMs <= mostMs)) return
    const fits = known(model)
    models.set(model, { ...fits, [part]: observed(fits[part], units, tookMs) })
    revision += 1
  }

  const estimate: CostEstimate = {
    recomputeMs: (model, tokens) => costAt(known(model).prefill, tokens),
    typicalPrefillMs: (model) => {
      const { prefill } = known(model)
      const { weight, y } = prefill.sums
      return Math.max(1, weight > 0 ? y / weight : costAt(prefill, typicalTokens))
    },
    loadMs: (model, bytes) => costAt(known(model).load, bytes),
  }
  return {
    ...estimate,
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

/** The share of earlier weight that one observation replaces: about the last 50 observations count. */
const fading = 0.02
/** After this many observations, a new one is limited to these multiples of its expected value. */
const clampedAfter = 5
const mostAboveExpected = 4
const mostBelowExpected = 1 / 8
/** Waits only make an observation longer: longer ones count less, so the line settles near the undisturbed ones. */
const weightOfLonger = 0.2
const weightOfShorter = 0.8
/** Below this variance over squared mean, units are too similar to tell the fixed part from the part per unit. */
const leastSpread = 0.01
const leastPerUnit = 1e-12

/** Milliseconds for `units`; 0 for none. */
const costAt = ({ line }: Fit, units: number): number => (units <= 0 ? 0 : line.fixed + line.perUnit * units)

/** The fit after one more observation: recent ones count most, outliers little. */
const observed = (fit: Fit, units: number, milliseconds: number): Fit => {
  const { count, weight, x, y, xx, xy } = fit.sums
  const expected = costAt(fit, units)
  const seen =
    count < clampedAfter
      ? milliseconds
      : Math.min(Math.max(milliseconds, expected * mostBelowExpected), expected * mostAboveExpected)
  const kept = 1 - fading
  const own = seen > expected ? weightOfLonger : weightOfShorter
  return fitOf(fit.initial, {
    count: count + 1,
    weight: weight * kept + own,
    x: x * kept + own * units,
    y: y * kept + own * seen,
    xx: xx * kept + own * units * units,
    xy: xy * kept + own * units * seen,
  })
}

const fitOf = (initial: CostLine, sums: FitSums = noSums): Fit => ({ initial, sums, line: fitLine(initial, sums) })

/** A least-squares line. `initial` holds until the first observation, its fixed part until both can be told apart. */
const fitLine = (initial: CostLine, { weight, x, y, xx, xy }: FitSums): CostLine => {
  if (!(weight > 0 && x > 0)) return initial
  const meanX = x / weight
  const meanY = y / weight
  const variance = xx / weight - meanX * meanX
  if (variance < leastSpread * meanX * meanX) {
    const fixed = Math.min(initial.fixed, meanY)
    return { fixed, perUnit: Math.max(leastPerUnit, (meanY - fixed) / meanX) }
  }
  const perUnit = (xy / weight - meanX * meanY) / variance
  const fixed = meanY - perUnit * meanX
  return perUnit <= 0 || fixed < 0 ? { fixed: 0, perUnit: Math.max(leastPerUnit, xy / xx) } : { fixed, perUnit }
}
