import { z } from 'zod'
import { readJson } from '../json/read-json.ts'

/** The models of an engine. */
export interface ServedModels {
  /** Names that requests use: ids, aliases, and LoRA adapters, which vLLM lists like models, with a `parent`. */
  readonly names: ReadonlySet<string>
  /** Whether the engine may answer other names, too. */
  readonly answersAnyName: boolean
  /** Longest prompt with its answer that each of them takes, tokens. Undefined: the engine does not tell. */
  readonly contextTokens?: number | undefined
}

/** Whether one of several pods serves a model; `possible`: one answers any name, or its models are not known yet. */
export type ModelService = 'listed' | 'possible' | 'no'

/** `pods` are those of one pool, ready or not; without any, the pool serves what is `configured` for it. */
export const serviceOf = (
  pods: readonly { readonly models?: ServedModels | undefined }[],
  model: string,
  configured: readonly string[] = [],
): ModelService => {
  if (pods.length === 0) return configured.includes(model) ? 'listed' : 'no'
  if (pods.some(({ models }) => models?.names.has(model))) return 'listed'
  return pods.some(({ models }) => models?.answersAnyName !== false) ? 'possible' : 'no'
}

/** Tokens of the shortest context among pods that may serve the model. Undefined: none tells. */
export const contextTokensOf = (
  pods: readonly { readonly models?: ServedModels | undefined }[],
  model: string,
): number | undefined => {
  const lengths = pods.flatMap(({ models }) =>
    models?.names.has(model) || models?.answersAnyName ? (models.contextTokens ?? []) : [],
  )
  return lengths.length === 0 ? undefined : Math.min(...lengths)
}

/** Of an engine in a pool with configured models; empty: it serves what it lists. */
export const restrictModels = (
  learnt: ServedModels | undefined,
  configured: readonly string[],
): ServedModels | undefined => {
  if (configured.length === 0) return learnt
  const names =
    learnt === undefined || learnt.answersAnyName ? configured : configured.filter((name) => learnt.names.has(name))
  return { ...learnt, names: new Set(names), answersAnyName: false }
}

const listedModel = z.object({
  id: z.string(),
  owned_by: z.string().nullish(),
  /** llama-server. */
  aliases: z.array(z.string()).nullish(),
  /** vLLM. */
  max_model_len: z.int().positive().nullish().catch(undefined),
  /** llama-server, of each slot. */
  meta: z.object({ n_ctx: z.int().positive().nullish() }).nullish().catch(undefined),
})
const modelList = z.object({ data: z.array(listedModel).max(10_000) })

/** llama-server answers every name with its one model. */
const answersAnyName = 'llamacpp'

/** Reads the answer to `GET /v1/models`. If the text is no list of models, any name may be answered. */
export const parseServedModels = (text: string): ServedModels => {
  const data = modelList.safeParse(readJson(text)).data?.data ?? []
  const lengths = data.flatMap(({ max_model_len, meta }) => max_model_len ?? meta?.n_ctx ?? [])
  return {
    ...(lengths.length === 0 ? {} : { contextTokens: Math.min(...lengths) }),
    names: new Set(data.flatMap(({ id, aliases }) => [id, ...(aliases ?? [])])),
    answersAnyName: data.length === 0 || data.some((model) => model.owned_by === answersAnyName),
  }
}
