import { basename } from 'node:path'
import { z } from 'zod'
import { readJson } from '../../json/read-json.ts'
import { propsSchema } from '../../kvcache/llamacpp-slots/engines.ts'
import { labelsOf, layoutLabels } from '../../kvcache/lmcache/engine-facts.ts'
import { type Answer, ask, type Question } from '../ask.ts'
import { type ClockReading, readClock } from './clock-reading.ts'

/** What one engine says of itself. */
export interface EngineFacts {
  readonly pool: string
  readonly address: string
  readonly models: readonly string[]
  /** What must be equal for one engine to use the KV of another one; what it does not tell is missing. */
  readonly layout: Readonly<Record<string, string>>
}

const model = z.object({
  id: z.string(),
  root: z.string().nullish(),
  parent: z.string().nullish(),
  max_model_len: z.number().nullish(),
})
const modelsSchema = z.object({ data: z.array(model) })
const versionSchema = z.object({ version: z.string() })

/** Asks an engine. A text: why it is not known. */
export const askEngineFacts = async (
  pod: { readonly pool: string; readonly address: string; readonly scheme: 'http' | 'https' },
  question: Question,
): Promise<{ readonly facts: EngineFacts; readonly clocks: readonly ClockReading[] } | string> => {
  const at = (path: string) => ask(`${pod.scheme}://${pod.address}${path}`, question)
  const [models, version, props, metrics] = await Promise.all([
    at('/v1/models'),
    at('/version'),
    at('/props'),
    at('/metrics'),
  ])
  if (typeof models === 'string') return models
  if (models.status !== 200) return `${pod.address} answers GET /v1/models with ${models.status}`
  const answers = { models: textOf(models), version: textOf(version), props: textOf(props), metrics: textOf(metrics) }
  return {
    facts: { pool: pod.pool, address: pod.address, ...readEngineFacts(answers) },
    clocks: readClock(`the engine ${pod.address}`, models),
  }
}

const textOf = (answer: Answer | string): string =>
  typeof answer === 'string' || answer.status !== 200 ? '' : answer.text

/** Texts of `/v1/models`, `/version`, `/props` and `/metrics`; empty: the engine has no such path. */
export const readEngineFacts = (answers: {
  readonly models: string
  readonly version: string
  readonly props: string
  readonly metrics: string
}): Pick<EngineFacts, 'models' | 'layout'> => {
  const data = modelsSchema.safeParse(readJson(answers.models)).data?.data ?? []
  // Adapters come and go.
  const bases = data.filter(({ parent }) => parent == null)
  const props = propsSchema.safeParse(readJson(answers.props)).data
  const cache = labelsOf(answers.metrics, 'vllm:cache_config_info')
  const layout = {
    version: versionSchema.safeParse(readJson(answers.version)).data?.version,
    'weights (root)': bases.map(({ root }) => root ?? '').join(', '),
    max_model_len: bases.map(({ max_model_len: length }) => length ?? '').join(', '),
    ...Object.fromEntries(layoutLabels.map((label) => [label, cache.get(label)])),
    build_info: props?.build_info,
    model_path: props?.model_path === undefined ? undefined : basename(props.model_path),
    model_ftype: props?.model_ftype,
    total_slots: props?.total_slots,
    n_ctx: props?.default_generation_settings?.n_ctx,
  }
  return {
    models: bases.map(({ id }) => id).toSorted(),
    layout: Object.fromEntries(
      Object.entries(layout).flatMap(([name, value]) =>
        value === undefined || value === '' ? [] : [[name, String(value)]],
      ),
    ),
  }
}
