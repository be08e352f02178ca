import { Agent, request } from 'undici'
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

/** Metrics of an engine are some hundred kilobytes at most; more of a body is not read. */
const maxBodyBytes = 1024 * 1024

/** `deadlineMs` limits both calls to a pod together. */
export const createPodProbe = (options: { readonly deadlineMs: number }): PodProbe => {
  const { deadlineMs } = options
  const agent = new Agent({ connections: 2, connect: { timeout: deadlineMs } })

  const get = async (url: string, signal: AbortSignal) => {
    const { statusCode, body } = await request(url, { dispatcher: agent, signal })
    const text = await readText(body)
    return { statusCode, isSuccess: statusCode >= 200 && statusCode < 300, text }
  }

  const probe = async (address: PodAddress, signal: AbortSignal): Promise<ProbeResult> => {
    const [health, metrics] = await Promise.allSettled([
      get(`http://${address}/health`, signal),
      get(`http://${address}/metrics`, signal),
    ])
    const load =
      metrics.status === 'rejected' ? undefined : parseEngineMetrics(metrics.value.isSuccess ? metrics.value.text : '')
    if (health.status === 'rejected') return { problem: errorReason(health.reason), load }
    const { isSuccess, statusCode } = health.value
    return { problem: isSuccess ? undefined : `GET /health answered ${statusCode}`, load }
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

const readText = async (body: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBodyBytes) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, maxBodyBytes)
}
