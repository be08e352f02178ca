// The engine's metrics under the names that vLLM uses, so that whatever reads vLLM's reads these too.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Engine } from './inference/engine.ts'
import type { FinishReason } from './inference/generation.ts'

/** Bounds in seconds, vLLM's own. */
const firstTokenBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
]

/** Counts what happens. */
export interface EngineMetrics {
  /** A prompt's tokens, and how many of them were there already. */
  promptBegun(tokens: { readonly prompt: number; readonly cached: number }): void
  firstToken(seconds: number): void
  tokenGenerated(): void
  finished(reason: FinishReason): void
  /** The text of GET /metrics. */
  text(): Promise<string>
  readonly contentType: string
}

/** Creates the metrics of a ready engine. */
export function createEngineMetrics(engine: Engine, modelName: string): EngineMetrics {
  const registry = new Registry()
  registry.setDefaultLabels({ model_name: modelName })
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })

  const processing = () => engine.slots().filter((slot) => slot.isProcessing)
  gauge('vllm:num_requests_running', 'Tasks that hold a slot.', () => processing().length)
  gauge('vllm:num_requests_waiting', 'Tasks that wait for a slot.', () => engine.waiting())
  gauge('vllm:kv_cache_usage_perc', 'Share of the KV cache that running tasks use; 1 means all of it.', () => {
    const used = processing().reduce((sum, slot) => sum + slot.tokenCount, 0)
    return used / (engine.slots().length * engine.runtime.contextTokens)
  })
  const startSeconds = Date.now() / 1000 - process.uptime()
  gauge('process_start_time_seconds', 'Start of the process, in seconds since 1970.', () => startSeconds)

  const queries = counter('vllm:prefix_cache_queries_total', 'Prompt tokens looked up in the slots.')
  const hits = counter('vllm:prefix_cache_hits_total', 'Prompt tokens whose KV was there already.')
  const promptTokens = counter('vllm:prompt_tokens_total', 'Prompt tokens taken in, whether computed or reused.')
  const generationTokens = counter('vllm:generation_tokens_total', 'Tokens generated.')
  const success = new Counter({
    name: 'vllm:request_success_total',
    help: 'Requests answered to their end.',
    labelNames: ['finished_reason'],
    registers,
  })
  const timeToFirstToken = new Histogram({
    name: 'vllm:time_to_first_token_seconds',
    help: 'From the arrival of a request to its first token.',
    buckets: firstTokenBuckets,
    registers,
  })

  return {
    promptBegun({ prompt, cached }) {
      queries.inc(prompt)
      hits.inc(cached)
      promptTokens.inc(prompt)
    },
    firstToken: (seconds) => timeToFirstToken.observe(seconds),
    tokenGenerated: () => generationTokens.inc(),
    finished: (reason) => success.inc({ finished_reason: reason }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}
