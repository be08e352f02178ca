import { Agent, type Dispatcher, request } from 'undici'
import { withinLimit } from '../async/deadline.ts'
import { type EngineLoad, parseEngineMetrics } from './engine-metrics.ts'
import type { PodAddress } from './pod.ts'

/** The result of one check of a pod. */
export interface ProbeResult {
  /** Undefined: `GET /health` answered 2xx in time. Else a short reason. */
  readonly problem: string | undefined
  /** Undefined: `GET /metrics` did not answer in time. All 0: the engine has no metrics. */
  readonly load: EngineLoad | undefined
}

/** Checks the health and the load of pods. */
export interface PodProbe {
  /** Resolves within the deadline, or at once when `signal` fires. Never rejects. */
  probe(address: PodAddress, signal: AbortSignal): Promise<ProbeResult>
  close(): Promise<void>
}

/** Metrics of an engine are some hundred kilobytes at most; more is not read. */
const maxMetricsBytes = 1024 * 1024
const maxIgnoredBytes = 64 * 1024

/** `deadlineMs` limits both calls to a pod together. */
export const createPodProbe = (options: { readonly deadlineMs: number }): PodProbe => {
  const { deadlineMs } = options
  const agent = new Agent({ connections: 2, connect: { timeout: deadlineMs } })
  const probe = async (address: PodAddress, signal: AbortSignal): Promise<ProbeResult> => {
    const get = (path: string): Promise<Dispatcher.ResponseData> =>
      request(`http://${address}${path}`, { dispatcher: agent, signal })
    const [problem, load] = await Promise.all([readHealth(get), readLoad(get)])
    return { problem, load }
  }
  return {
    probe: (address, signal) => withinLimit(deadlineMs, (limit) => probe(address, limit), signal),
    close: () => agent.destroy(),
  }
}

/** Why a call failed: the code of a system error (`ECONNREFUSED`), else its message. */
export const errorReason = (error: unknown): string => {
  if (typeof error !== 'object' || error === null) return 'failed'
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'message' in error && typeof error.message === 'string' ? error.message : 'failed'
}

type Get = (path: string) => Promise<Dispatcher.ResponseData>

const readHealth = async (get: Get): Promise<string | undefined> => {
  try {
    const { statusCode, body } = await get('/health')
    await body.dump({ limit: maxIgnoredBytes })
    return isSuccess(statusCode) ? undefined : `GET /health answered ${statusCode}`
  } catch (error) {
    return errorReason(error)
  }
}

const readLoad = async (get: Get): Promise<EngineLoad | undefined> => {
  try {
    const { statusCode, body } = await get('/metrics')
    if (isSuccess(statusCode)) return parseEngineMetrics(await readText(body))
    await body.dump({ limit: maxIgnoredBytes })
    return { running: 0, waiting: 0, kvUsage: 0 }
  } catch {
    return undefined
  }
}

const readText = async (body: Dispatcher.ResponseData['body']): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxMetricsBytes) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxMetricsBytes)
}

const isSuccess = (statusCode: number): boolean => statusCode >= 200 && statusCode < 300
