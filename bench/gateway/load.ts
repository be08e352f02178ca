import { z } from 'zod'
import { startChild } from '../../playground/child-process.ts'
import { goProgram } from './go-programs.ts'

/** What the load generator sends. */
export interface LoadPlan {
  /** `127.0.0.1:8000` */
  readonly target: string
  readonly bodyBytes: number
  /** Either these or `seconds`. */
  readonly requests?: number
  readonly seconds?: number
  /** Requests due per second. Undefined: each connection sends when the last request was answered. */
  readonly rate?: number
  readonly stream?: boolean
  /** Sessions to use. An answer without `x-session-id` is a failure then: its request bypassed the gateway. */
  readonly ids?: readonly string[]
  /** The header that holds the id, or `body.` and a member of the body. */
  readonly idIn?: string | undefined
  /** Create a session with each request, instead of a turn. */
  readonly createTtl?: number
}

/** Milliseconds. Missing when there was nothing to measure. */
const quantile = z.number().default(Number.NaN)
const quantiles = z.object({ mean: quantile, p50: quantile, p99: quantile, max: quantile }).prefault({})

const loadEvent = z.object({
  event: z.enum(['progress', 'result']),
  /** Answered. */
  requests: z.number(),
  failures: z.number(),
  firstFailure: z.string().optional(),
  seconds: z.number(),
  latencyMs: quantiles,
  gapMs: quantiles,
})
type LoadResult = z.infer<typeof loadEvent>

const connections = 32

/** Runs the load generator until it ends. `onProgress` is called each second. @throws Error if it printed no result */
export const runLoad = async (plan: LoadPlan, onProgress?: (progress: LoadResult) => void): Promise<LoadResult> => {
  let result: LoadResult | undefined
  const onLine = (line: string): void => {
    if (!line.startsWith('{')) return
    const event = loadEvent.parse(JSON.parse(line))
    if (event.event === 'result') result = event
    else onProgress?.(event)
  }
  const argument = JSON.stringify({ ...plan, connections, progress: onProgress !== undefined })
  const child = await startChild({ name: 'load', command: [goProgram('load'), argument], onLine })
  const exit = await child.exited
  if (result === undefined) throw new Error(`the load generator ended with ${exit.code}: ${child.output().at(-1)}`)
  return result
}
