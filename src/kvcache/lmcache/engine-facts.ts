import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import * as z from 'zod'
import { untilAborted } from '../../async/deadline.ts'
import { askEngine } from '../../engines/ask-engine.ts'
import type { EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'
import { createEventSources } from '../kv-events/event-sources.ts'

/** What the connector has to know of an engine. */
export interface EngineFacts {
  /** The engine's own name of its model, by which LMCache files KV. */
  readonly modelRoot: string
  /** Equal for engines that can use each other's KV: same version, model, weights and KV layout. */
  readonly fingerprint: string
  /** Tokens of a block of the engine's own cache. */
  readonly blockTokens: number
  /** Whether the engine publishes KV events. */
  readonly hasEvents: boolean
}

const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), root: z.string().nullish(), parent: z.string().nullish() })).max(10_000),
})
const versionSchema = z.object({ version: z.string() })

/** Labels of vLLM's `vllm:cache_config_info` that decide how KV lies in memory. */
export const layoutLabels = ['block_size', 'cache_dtype'] as const
const defaultBlockTokens = 16

/** Asks engines what they are, and remembers it. */
export interface EngineFactsSource {
  /** Forgets the engine and asks anew, for a pod that became ready may run another. @throws if it does not answer */
  renew(pod: string, signal: AbortSignal): Promise<unknown>
  /** @throws when the engine does not answer, or does not serve the model */
  of(pod: string, model: string, signal: AbortSignal): Promise<EngineFacts>
}

/** An engine replaced within `ageMs` is taken for the former one until its pod is ready. */
export const createEngineFacts = (
  http: EngineHttp,
  callTimeoutMs: number,
  {
    ageMs = 10_000,
    modelVersion,
  }: {
    readonly ageMs?: number
    /** What the operator calls the weights: engines do not tell. Default: not named. */
    readonly modelVersion?: string | undefined
  } = {},
): EngineFactsSource => {
  const sources = createEventSources(http, callTimeoutMs)
  const describe = async (pod: string) => {
    const signal = AbortSignal.timeout(callTimeoutMs)
    const ask = (path: string) => askEngine(http, { pod, path, signal })
    const asked = [ask('/v1/models'), ask('/version'), ask('/metrics'), sources(pod, signal)] as const
    const [models, version, metrics, published] = await Promise.all(asked)
    const layout = labelsOf(metrics ?? '', 'vllm:cache_config_info')
    return {
      models: modelsSchema.parse(readJson(models ?? '{"data":[]}')).data,
      build: JSON.stringify([
        version === undefined ? '' : versionSchema.parse(readJson(version)).version,
        layoutLabels.map((label) => layout.get(label) ?? ''),
      ]),
      blockTokens: Number(layout.get('block_size')) || defaultBlockTokens,
      hasEvents: published.length > 0,
    }
  }

  // Several turns at once ask once, so none of them may break it off.
  const engines = new LRUCache<string, Awaited<ReturnType<typeof describe>>>({
    max: 10_000,
    ttl: ageMs,
    ttlResolution: 0,
    fetchMethod: (pod) => describe(pod),
    ignoreFetchAbort: true,
  })

  const look = async (pod: string, signal: AbortSignal, allowStale = false) => {
    // Else nobody would handle the failure of what is asked.
    signal.throwIfAborted()
    const asked = engines.fetch(pod, { allowStale, noDeleteOnFetchRejection: allowStale })
    return untilAborted(asked, signal, () => signal.throwIfAborted())
  }

  return {
    renew: (pod, signal) => {
      engines.delete(pod)
      return look(pod, signal)
    },
    of: async (pod, model, signal) => {
      // No turn waits for what only a new engine process changes: an old answer counts until there is a new one.
      let engine = await look(pod, signal, true)
      // Adapters come and go while it runs.
      const isBase = engine?.models.some(({ id, parent }) => id === model && parent == null)
      if (isBase !== true) engine = await look(pod, signal)
      const served = engine?.models.find(({ id }) => id === model)
      if (engine === undefined || served === undefined) throw new Error('the engine does not serve the session’s model')
      // An adapter's KV is the adapter's own, but LMCache files it under the model below it.
      const base = served.parent == null ? served : (engine.models.find(({ id }) => id === served.parent) ?? served)
      const modelRoot = base.root ?? base.id
      const version = modelVersion === undefined ? [] : [modelVersion]
      const identity = JSON.stringify([engine.build, modelRoot, served.root ?? '', ...version])
      const fingerprint = hash('sha256', identity).slice(0, 32)
      return { modelRoot, fingerprint, blockTokens: engine.blockTokens, hasEvents: engine.hasEvents }
    },
  }
}

/** The labels of the first sample of a metric in Prometheus's text format. */
export const labelsOf = (metrics: string, name: string): ReadonlyMap<string, string> => {
  const at = metrics.indexOf(`\n${name}{`)
  if (at === -1) return new Map()
  const line = metrics.slice(at + 1, metrics.indexOf('\n', at + 1))
  return new Map([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [label, value]))
}
