import type { WireEvent } from '../kv-event-messages.ts'
import { type KvEventPublisher, startKvEventPublisher } from '../kv-event-publisher.ts'
import { createBlockCache } from './block-cache.ts'
import { chunkKeysOf } from './chunk-keys.ts'
import { type EngineWork, type InferencePath, isInferencePath, workOf } from './engine-requests.ts'
import type { LmcacheInstance } from './lmcache-instance.ts'
import {
  notFound,
  type SimCall,
  type SimFault,
  type SimReply,
  type SimRequest,
  type SimServer,
  startSimServer,
} from './sim-server.ts'
import { answerTo, textOf } from './tokenizer.ts'

export interface EngineOptions {
  readonly name: string
  readonly modelName: string
  readonly modelRoot: string
  readonly version: string
  readonly blockTokens: number
  readonly chunkTokens: number
  /** Whether it publishes KV events. */
  readonly publishes: boolean
  readonly instance: LmcacheInstance
  readonly intercept: (call: SimCall) => SimFault | undefined
}

/** One vLLM server. */
export interface Engine {
  readonly server: SimServer
  /** Leading tokens of the text that lie in its own cache under the salt. */
  resident(salt: string, tokens: readonly number[]): number
  /** How many subscriptions its events have. */
  subscribers(): number
  /** The cache drops every block of the salt. */
  evict(salt: string): Promise<void>
  /** The process ends, and begins again when that was noticed: with an empty cache, events from 0, its addresses. */
  restart(untilNoticed: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** vLLM reports the reused blocks of a prompt each time its scheduler looks whether LMCache has found the rest. */
const schedulerTries = 4

interface Computed {
  readonly answer: readonly number[]
  readonly cached: number
}

export const startEngine = async (options: EngineOptions): Promise<Engine> => {
  const { blockTokens, chunkTokens, instance, modelName, modelRoot } = options
  const cache = createBlockCache(blockTokens)
  let publisher = options.publishes ? await startKvEventPublisher() : undefined
  let starts = 1

  const tell = async (events: readonly WireEvent[]): Promise<void> => {
    if (events.length > 0) await publisher?.publish(...events)
  }

  const compute = async ({ prompt, salt, sessionId, reportsAll, maxTokens }: EngineWork): Promise<Computed> => {
    // The last token of a prompt is always computed.
    const reusable = Math.floor((prompt.length - 1) / blockTokens) * blockTokens
    const own = Math.min(cache.resident(salt, prompt), reusable)
    const keys = chunkKeysOf({ model_name: modelRoot, cache_salt: salt, token_ids: prompt }, chunkTokens)
    const fetched = instance.fetch(keys)
    const cached = Math.max(own, Math.min(fetched * chunkTokens, prompt.length - 1))
    const answer = answerTo(prompt, maxTokens)
    // Nor is the last token of an answer computed.
    const tokens = [...prompt, ...answer.slice(0, -1)]
    const reused = { salt, tokens: prompt.slice(0, own), turnId: sessionId }
    for (let tries = 0; reportsAll && tries < schedulerTries; tries += 1) await tell(cache.report(reused))
    await tell(cache.fill({ salt, tokens, from: own, turnId: sessionId }))
    // Whole chunks of the prompt, not of the answer.
    if (fetched < keys.length) instance.write(keys.slice(fetched))
    return { answer, cached }
  }

  const infer = async (path: InferencePath, request: SimRequest): Promise<SimReply> => {
    const header = request.headers['x-session-id']
    const work = workOf(path, request.body, typeof header === 'string' ? header : undefined)
    if (work.model !== modelName) {
      const message = `The model \`${work.model}\` does not exist. Valid aliases: ${modelName}.`
      return { status: 404, body: { error: { message, type: 'NotFoundError', param: 'model', code: 404 } } }
    }
    return { status: 200, body: answerBody(path, work, await compute(work)) }
  }

  const handle = (request: SimRequest): Promise<SimReply> | SimReply => {
    const { path } = request
    if (isInferencePath(path)) return infer(path, request)
    switch (path) {
      case '/health':
        return { status: 200, body: '' }
      case '/version':
        return { status: 200, body: { version: options.version } }
      case '/v1/models': {
        const model = { id: modelName, object: 'model', root: modelRoot, parent: null, max_model_len: 100_000 }
        return { status: 200, body: { object: 'list', data: [model] } }
      }
      case '/metrics':
        return { status: 200, body: metricsText(blockTokens, starts) }
      case '/kv_event_sources':
        return publisher === undefined ? notFound : { status: 200, body: { 0: describeSource(publisher) } }
      default:
        return notFound
    }
  }

  const server = await startSimServer({ name: options.name, intercept: options.intercept, handle })
  return {
    server,
    resident: (salt, tokens) => cache.resident(salt, tokens),
    subscribers: () => publisher?.subscribers ?? 0,
    evict: (salt) => tell(cache.evict(salt)),
    restart: async (untilNoticed) => {
      await server.stop()
      cache.clear()
      starts += 1
      const former = publisher?.source
      publisher?.close()
      if (former !== undefined) {
        await untilNoticed()
        publisher = await startKvEventPublisher(former)
      }
      await server.start()
    },
    close: async () => {
      await server.stop()
      publisher?.close()
    },
  }
}

const answerBody = (path: InferencePath, work: EngineWork, { answer, cached }: Computed): unknown => {
  const [prompt, output] = [work.prompt.length, answer.length]
  const text = textOf(answer)
  if (path === '/v1/responses') {
    const usage = { input_tokens: prompt, output_tokens: output, input_tokens_details: { cached_tokens: cached } }
    return { object: 'response', model: work.model, output: [{ content: [{ type: 'output_text', text }] }], usage }
  }
  const details = { prompt_tokens_details: { cached_tokens: cached } }
  const usage = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output, ...details }
  const choice =
    path === '/v1/completions' ? { index: 0, text } : { index: 0, message: { role: 'assistant', content: text } }
  return { model: work.model, choices: [{ ...choice, finish_reason: 'length' }], usage, kv_transfer_params: null }
}

const metricsText = (blockTokens: number, starts: number): string =>
  [
    '# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.',
    '# TYPE process_start_time_seconds gauge',
    `process_start_time_seconds 1.79527813${starts}e+09`,
    '# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig',
    '# TYPE vllm:cache_config_info gauge',
    `vllm:cache_config_info{_block_size_resolved="True",block_size="${blockTokens}",cache_dtype="auto",engine="0"} 1.0`,
    '',
  ].join('\n')

const describeSource = ({ source }: KvEventPublisher) => ({
  enable_kv_cache_events: true,
  publisher: 'zmq',
  endpoint: source.endpoint,
  topic: source.topic,
})
