import { LRUCache } from 'lru-cache'
import type { CostEstimate } from './cost-estimate.ts'
import { decodeCosts, encodeCosts, type ModelCosts } from './cost-profile-text.ts'
import { type CostLine, LearntLine } from './learnt-line.ts'

/** What engines of one kind cost, model by model, learnt from turns that ran. */
export interface CostProfile extends CostEstimate {
  /**
   * A turn computed `tokens` prompt tokens and sent its first byte after `ttfbMs`, of which it had, by prediction, `waitedMs` to
   * wait for others (default 0). Short prompts say too little and are left out.
   */
  observe(
    model: string,
    observation: { readonly tokens: number; readonly ttfbMs: number; readonly waitedMs?: number },
  ): void
  /** `bytes` of KV were loaded in `loadMs`, of which the load had, by prediction, `waitedMs` to wait for others (default 0). */
  observeLoad(
    model: string,
    observation: { readonly bytes: number; readonly loadMs: number; readonly waitedMs?: number },
  ): void
  /** Grows with everything that is learnt: tells whether there is something new to keep. */
  readonly revision: number
  /** All that was learnt, as a text for a {@link CostProfileStore}. Names models, and nothing of turns. */
  toText(): string
  /** Takes over what a profile knew, except of models that this one has seen itself. `false`: the text is none of {@link toText}. */
  restore(text: string): boolean
}

export interface CostProfileOptions {
  /** What computing one token is taken to cost until it was seen, milliseconds. */
  readonly initialMsPerToken: number
  /** What a prompt is taken to cost beside its tokens. Default 0. */
  readonly initialPrefillMs?: number
  /** What loading one byte is taken to cost until it was seen. Default: 1 GB a second, a good network disk. */
  readonly initialMsPerByte?: number
  /** What a load is taken to cost beside its bytes. Default 20. */
  readonly initialLoadMs?: number
  /** Beyond that, the model that was used least recently is forgotten. Default 1,000. */
  readonly maxModels?: number
}

/** What the average turn computes, until turns were seen. */
const typicalTokens = 1024
const minTokens = 128
const minBytes = 65_536
/** Beyond any prompt, any artefact and any patience: such numbers are mistakes. */
const mostUnits = 1e15
const mostMs = 1e9

interface Lines {
  readonly prefill: LearntLine
  readonly load: LearntLine
}

/** A profile of one kind of engine; another kind has one of its own. */
export const createCostProfile = (options: CostProfileOptions): CostProfile => {
  const initialPrefill: CostLine = { fixed: options.initialPrefillMs ?? 0, perUnit: options.initialMsPerToken }
  const initialLoad: CostLine = { fixed: options.initialLoadMs ?? 20, perUnit: options.initialMsPerByte ?? 1e-6 }
  const unseen: Lines = { prefill: new LearntLine(initialPrefill), load: new LearntLine(initialLoad) }
  const models = new LRUCache<string, Lines>({ max: options.maxModels ?? 1000 })
  /** The one that was used most recently: a turn asks several times for each pod. */
  let latest: { readonly model: string; readonly lines: Lines } | undefined
  let revision = 0

  const knownOf = (model: string): Lines | undefined => {
    if (latest?.model === model) return latest.lines
    const lines = models.get(model)
    if (lines !== undefined) latest = { model, lines }
    return lines
  }

  const linesOf = (model: string): Lines => {
    const known = knownOf(model)
    if (known !== undefined) return known
    const lines: Lines = { prefill: new LearntLine(initialPrefill), load: new LearntLine(initialLoad) }
    models.set(model, lines)
    latest = { model, lines }
    return lines
  }

  return {
    recomputeMs: (model, tokens) => (knownOf(model) ?? unseen).prefill.at(tokens),
    typicalPrefillMs: (model) => {
      const { prefill } = knownOf(model) ?? unseen
      return Math.max(1, prefill.mean ?? prefill.at(typicalTokens))
    },
    loadMs: (model, bytes) => (knownOf(model) ?? unseen).load.at(bytes),
    observe: (model, { tokens, ttfbMs, waitedMs = 0 }) => {
      if (!(tokens >= minTokens && tokens <= mostUnits && isDuration(ttfbMs) && isWait(waitedMs))) return
      learn(linesOf(model).prefill, { units: tokens, tookMs: ttfbMs, waitedMs })
      revision += 1
    },
    observeLoad: (model, { bytes, loadMs, waitedMs = 0 }) => {
      if (!(bytes >= minBytes && bytes <= mostUnits && isDuration(loadMs) && isWait(waitedMs))) return
      learn(linesOf(model).load, { units: bytes, tookMs: loadMs, waitedMs })
      revision += 1
    },
    get revision() {
      return revision
    },
    toText: () => {
      const known: ModelCosts[] = []
      // From the least to the most recently used, as `restore` takes them.
      models.rforEach(({ prefill, load }, model) => {
        known.push({ model, prefill: prefill.evidence, load: load.evidence })
      })
      return encodeCosts(known)
    },
    restore: (text) => {
      const restored = decodeCosts(text)
      if (restored === undefined) return false
      latest = undefined
      for (const { model, prefill, load } of restored) {
        if (models.has(model)) continue
        models.set(model, {
          prefill: new LearntLine(initialPrefill, prefill),
          load: new LearntLine(initialLoad, load),
        })
      }
      return true
    },
  }
}

const isWait = (milliseconds: number): boolean => milliseconds >= 0 && milliseconds <= mostMs
const isDuration = (milliseconds: number): boolean => milliseconds > 0 && isWait(milliseconds)

/** The longer a turn waited, the more of what is left is the error of the predicted wait. */
const learn = (
  line: LearntLine,
  seen: { readonly units: number; readonly tookMs: number; readonly waitedMs: number },
): void => {
  const expected = line.at(seen.units)
  const certain = seen.waitedMs === 0 ? 1 : expected / (expected + seen.waitedMs)
  line.observe(seen.units, Math.max(0, seen.tookMs - seen.waitedMs), Math.max(1e-6, certain * certain))
}
