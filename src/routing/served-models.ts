import { z } from 'zod'
import { readJson } from '../json/read-json.ts'

/** The models of an engine. */
export interface ServedModels {
  /** Names by which requests ask for them: ids, aliases, and LoRA adapters, which vLLM lists like models, with a `parent`. */
  readonly names: ReadonlySet<string>
  /** Whether the engine may answer other names, too. */
  readonly answersAnyName: boolean
}

const modelList = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        owned_by: z.string().nullish(),
        /** llama-server. */
        aliases: z.array(z.string()).nullish(),
      }),
    )
    .max(10_000),
})

/** llama-server answers every name with its one model. */
const answersAnyName = 'llamacpp'

/** Reads the answer to `GET /v1/models`. A text that is no list of models says nothing, so that any name may be answered. */
export const parseServedModels = (text: string): ServedModels => {
  const data = modelList.safeParse(readJson(text)).data?.data ?? []
  return {
    names: new Set(data.flatMap(({ id, aliases }) => [id, ...(aliases ?? [])])),
    answersAnyName: data.length === 0 || data.some((model) => model.owned_by === answersAnyName),
  }
}
