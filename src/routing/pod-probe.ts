import { Agent, type Dispatcher, request } from 'undici'
import { type EngineLoad, parseEngineMetrics } from './engine-metrics.ts'
import { errorReason } from './error-reason.ts'
import type { PodAddress } from './pod.ts'

/** What one look at a pod found. */
export interface ProbeResult {
  /** Undefined: `GET /health` answered 2xx in time. Else, in a few words, what happened instead. */
  readonly problem: string | undefined
  /** Undefined: `GET /metrics` did not answer in time, so that the last reading is the best there is. */
  readonly load: EngineLoad | undefined
}

/** Asks engines how they are. */
export interface PodProbe {
  /** Resolves within the deadline, or at once when `signal` fires. Never rejects. */
  probe(address: PodAddress, signal: AbortSignal): Promise<ProbeResult>
  close(): Promise<void>
}

/** An engine's metrics are some hundred kilobytes at most; what comes after this many bytes is not read. */
const maxMetricsBytes = 1024 * 1024

/** `deadlineMs`: how long a pod may take for both of its answers together. */
export const createPodProbe = (options: { readonly deadlineMs: number }): PodProbe => {
  const agent = new Agent({ connections: 2, connect: { timeout: options.deadlineMs } })
  return {
    probe: async (address, signal) => {
      const limit = new AbortController()
      const stop = (): void => limit.abort(new Error('stopped'))
      const timer = setTimeout(
        () => limit.abort(new Error(`no answer within ${options.deadlineMs} ms`)),
        options.deadlineMs,
      )
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      const get = (path: string): Promise<Dispatcher.ResponseData> =>
        request(`http://${address}${path}`, { dispatcher: agent, signal: limit.signal })
      try {
        const [problem, load] = await Promise.all([readHealth(get), readLoad(get)])
        return { problem, load }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
      }
    },
    close: () => agent.destroy(),
  }
}

type Get = (path: string) => Promise<Dispatcher.ResponseData>

const readHealth = async (get: Get): Promise<string | undefined> => {
  try {
    const { statusCode, body } = await get('/health')
    await body.dump({ limit: 64 * 1024 })
    return isSuccess(statusCode) ? undefined : `GET /health answered ${statusCode}`
  } catch (error) {
    return errorReason(error)
  }
}

const noLoad: EngineLoad = { running: 0, waiting: 0, kvUsage: 0 }

const readLoad = async (get: Get): Promise<EngineLoad | undefined> => {
  try {
    const { statusCode, body } = await get('/metrics')
    if (isSuccess(statusCode)) return parseEngineMetrics(await readText(body))
    await body.dump({ limit: 64 * 1024 })
    return noLoad
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
