// The names under which the engine serves its one model.

/** The model as clients see it. */
export interface ServedModels {
  /** The name in metrics and logs. */
  readonly primaryName: string
  /** All names, the primary one first. */
  readonly names: readonly string[]
  readonly description: string
  readonly createdSeconds: number
  readonly contextTokens: number
}

/** What the engine says of its random model wherever it presents it. */
export const noiseNotice = 'Random weights: the text is noise, while prefill, KV cache and times are real.'

/** One entry of GET /v1/models. */
export function modelEntry(models: ServedModels, name: string) {
  return {
    id: name,
    object: 'model',
    created: models.createdSeconds,
    owned_by: 'context-cache-gateway',
    root: models.primaryName,
    description: models.description,
    max_model_len: models.contextTokens,
  }
}
