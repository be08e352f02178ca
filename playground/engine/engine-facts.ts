// Facts about the engine, in llama-server's form.
import { basename } from 'node:path'
import type { Engine } from './engine.ts'
import type { Service } from './exchange.ts'

/** The answer to `GET /props`. */
export const props = ({ engine: { llama }, modelPath }: Service) => ({
  build_info: `${llama.build}-embedded`,
  model_path: modelPath,
  total_slots: llama.sequences.length,
  default_generation_settings: { n_ctx: llama.contextTokens },
})

/** One entry of `GET /v1/models`. */
export const modelEntry = ({ engine: { llama }, modelPath }: Service, name: string) => ({
  id: name,
  object: 'model',
  created: 0,
  owned_by: 'embedded-engine',
  meta: {
    file: basename(modelPath),
    size: llama.modelBytes,
    n_vocab: llama.vocabularySize,
    n_ctx: llama.contextTokens,
  },
})

/** The answer to `GET /slots`. */
export const slotReports = (engine: Engine) =>
  engine.slots.map(({ sequence, lastTask }, id) => ({
    id,
    n_ctx: engine.llama.contextTokens,
    is_processing: engine.isBusy(id),
    n_prompt_tokens: sequence.tokenCount(),
    ...(lastTask === undefined ? {} : { id_task: lastTask.id, params: { n_keep: lastTask.keep } }),
  }))

const startSeconds = Math.round(Date.now() / 1000 - process.uptime())

/** The answer to `GET /metrics`. */
export const engineMetrics = (engine: Engine): string => {
  const processing = engine.slots.filter((_slot, id) => engine.isBusy(id))
  const usedTokens = processing.reduce((sum, { sequence }) => sum + sequence.tokenCount(), 0)
  return Object.entries({
    'llamacpp:requests_processing': processing.length,
    'llamacpp:requests_deferred': engine.waiting(),
    'llamacpp:kv_cache_usage_ratio': usedTokens / (engine.slots.length * engine.llama.contextTokens),
    process_start_time_seconds: startSeconds,
  })
    .map(([name, value]) => `# TYPE ${name} gauge\n${name} ${value}\n`)
    .join('')
}
