import { z } from 'zod'
import { withinLimit } from '../../async/deadline.ts'
import { askEngine } from '../../engines/ask-engine.ts'
import type { EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'

/** Where one engine process (one data parallel rank of a pod) publishes its KV events. */
export interface KvEventSource {
  /** ZeroMQ address of its PUB socket, as the gateway can connect to it. */
  readonly endpoint: string
  /** First frame of its messages; may be empty. */
  readonly topic: string
}

/** Asks a pod (`host:port`) where it publishes. Empty: it does not. @throws Error when it does not answer in time */
export type EventSources = (pod: string, signal: AbortSignal) => Promise<readonly KvEventSource[]>

/** vLLM's `GET /kv_event_sources`: a map from data parallel rank to that rank's publisher. */
export const createEventSources =
  (http: EngineHttp, timeoutMs = 5_000): EventSources =>
  async (pod, signal) => {
    const ask = (limited: AbortSignal) => askEngine(http, { pod, path: '/kv_event_sources', signal: limited })
    return readEventSources(pod, (await withinLimit(timeoutMs, ask, signal)) ?? '{}')
  }

const sourcesAnswer = z.record(
  z.string(),
  z.object({
    enable_kv_cache_events: z.boolean().default(true),
    publisher: z.string().nullish(),
    endpoint: z.string(),
    topic: z.string().nullish(),
  }),
)

/** @throws Error when the text is no such answer */
export const readEventSources = (pod: string, text: string): readonly KvEventSource[] => {
  const answer = sourcesAnswer.safeParse(readJson(text))
  if (!answer.success) throw new Error('the engine describes its event sources in an unknown way')
  const host = pod.replace(/:[0-9]+$/, '')
  return Object.values(answer.data).flatMap((source) => {
    const isUsable = source.enable_kv_cache_events && (source.publisher ?? 'zmq') === 'zmq'
    const endpoint = reachable(source.endpoint, host)
    return isUsable && endpoint !== undefined ? [{ endpoint, topic: source.topic ?? '' }] : []
  })
}

/** An engine that listens on every address is reached at its host. Undefined: only its own process can connect. */
const reachable = (endpoint: string, host: string): string | undefined => {
  if (endpoint.startsWith('ipc://')) return endpoint
  const address = /^tcp:\/\/(?<host>.+):(?<port>[0-9]{1,5})$/.exec(endpoint)?.groups
  if (address === undefined) return undefined
  const isAnyHost = ['*', '0.0.0.0', '[::]', '::'].includes(address['host'] ?? '')
  return isAnyHost ? `tcp://${host}:${address['port']}` : endpoint
}
