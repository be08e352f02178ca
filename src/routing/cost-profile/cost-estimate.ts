/** What it costs to have a prefix's KV in a pod, predicted. Cheap and without waiting: asked for every pod of every turn. */
export interface CostEstimate {
  /** Milliseconds that an engine would compute for `tokens` of a prompt; 0 for none. */
  recomputeMs(model: string, tokens: number): number
  /** Milliseconds that the model's average turn computes. Never 0. */
  typicalPrefillMs(model: string): number
  /** Milliseconds that loading `bytes` of KV from the persistent store into a pod would take; 0 for none. */
  loadMs(model: string, bytes: number): number
}

/** A stored prefix, and how much of it a pod already holds. */
export interface PossibleLoad {
  readonly model: string
  readonly stored: { readonly tokens: number; readonly bytes: number }
  readonly residentTokens: number
  /** Milliseconds until the pod's earlier loads will be done. Default 0. */
  readonly backlogMs?: number
}

/** Milliseconds until what the pod lacks would be loaded; undefined where it lacks nothing, or would compute it sooner: then it is not loaded. */
export const worthwhileLoadMs = (costs: CostEstimate, load: PossibleLoad): number | undefined => {
  const { model, stored } = load
  const missing = stored.tokens - load.residentTokens
  if (missing <= 0) return undefined
  const loadMs = (load.backlogMs ?? 0) + costs.loadMs(model, (stored.bytes * missing) / stored.tokens)
  return loadMs < costs.recomputeMs(model, missing) ? loadMs : undefined
}
