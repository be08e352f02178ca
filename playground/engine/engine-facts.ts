// Facts about the engine, in llama-server's form.
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import type { Engine } from './engine.ts'
import type { Service } from './exchange.ts'

/** Differs for every start, as llama-server's does: by it, others see that the slots are empty again. */
const mediaMarker = `<__media_${randomBytes(16).toString('hex')}__>`

/** The answer to `GET /props`. */
export const props = ({ engine: { llama }, modelPath }: Service) => ({
  build_info: `${llama.build}-embedded`,
  model_path: modelPath,
  total_slots: llama.sequences.length,
  media_marker: mediaMarker,
  default_generation_settings: { n_ctx: llama.contextTokens },
})

/** One entry of `GET /v1/models`. */
export const modelEntry = ({ engine: { llama }, modelPath }: Service, name: string) => ({
  id: name,
  object: 'model',
  created: 0,
  owned_by: 'llamacpp',
  meta: {
    file: basename(modelPath),
    size: llama.modelBytes,
    n_vocab: llama.vocabularySize,
    n_ctx: llama.contextTokens,
  },
})

const startSeconds = Math.round(Date.now() / 1000 - process.uptime())

/** The answer to `GET /metrics`. */
export const engineMetrics = (engine: Engine): string => {
  const processing = engine.slots().filter((slot) => slot.isProcessing)
  const usedTokens = processing.reduce((sum, slot) => sum + slot.tokenCount, 0)
  const { prompt, cached, predicted } = engine.counts()
  return [
    ['llamacpp:requests_processing', 'gauge', processing.length],
    ['llamacpp:requests_deferred', 'gauge', engine.waiting()],
    ['llamacpp:kv_cache_usage_ratio', 'gauge', usedTokens / (engine.slots().length * engine.llama.contextTokens)],
    ['llamacpp:prompt_tokens_total', 'counter', prompt - cached],
    ['llamacpp:prompt_tokens_cached_total', 'counter', cached],
    ['llamacpp:tokens_predicted_total', 'counter', predicted],
    ['process_start_time_seconds', 'gauge', startSeconds],
  ]
    .map(([name, type, value]) => `# TYPE ${name} ${type}\n${name} ${value}\n`)
    .join('')
}
