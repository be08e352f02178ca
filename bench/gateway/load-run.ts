import { z } from 'zod'
import { startChild } from '../../playground/child-process.ts'

/** Options of the load generator. */
export interface LoadOptions {
  readonly program: string
  /** `127.0.0.1:8000` */
  readonly target: string
  readonly connections: number
  readonly bodyBytes: number
  readonly warmUpSeconds: number
  readonly length: { readonly seconds: number } | { readonly requests: number }
  /** Requests due per second. Undefined: each connection sends when the last request was answered. */
  readonly ratePerSecond?: number | undefined
  readonly isStreamed: boolean
  /** File with the session ids to send. */
  readonly idsFile?: string | undefined
  /** An answer without `x-session-id` is a failure: its request bypassed the gateway. */
  readonly expectSession: boolean
  /** Create a session with each request, instead of a turn. */
  readonly create?: { readonly ttlSeconds: number } | undefined
  /** Called when the warm-up is over. */
  readonly onMeasuring?: (() => void) | undefined
  /** Called every second. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined
}

const quantiles = z.object({ mean: z.number(), p50: z.number(), p90: z.number(), p99: z.number(), max: z.number() })
/** Milliseconds. */
export type Quantiles = z.infer<typeof quantiles>

const progress = z.object({
  event: z.literal('progress'),
  answered: z.number(),
  failures: z.number(),
  seconds: z.number(),
})
export type LoadProgress = z.infer<typeof progress>

const result = z.object({
  event: z.literal('result'),
  requests: z.number(),
  failures: z.number(),
  firstFailure: z.string().optional(),
  seconds: z.number(),
  /** Missing when no request was answered. */
  latencyMs: quantiles.optional(),
  firstEventMs: quantiles.optional(),
  gapMs: quantiles.optional(),
})
export interface LoadResult extends Omit<z.infer<typeof result>, 'latencyMs' | 'event'> {
  readonly latencyMs: Quantiles
}

const noQuantiles: Quantiles = { mean: Number.NaN, p50: Number.NaN, p90: Number.NaN, p99: Number.NaN, max: Number.NaN }

/** Runs the load generator as a child process until it ends. @throws Error when it printed no result */
export const runLoad = async (options: LoadOptions): Promise<LoadResult> => {
  let found: LoadResult | undefined
  const onLine = (line: string): void => {
    if (line.startsWith('{"event":"measuring"')) options.onMeasuring?.()
    else if (line.includes('"event":"progress"')) options.onProgress?.(progress.parse(JSON.parse(line)))
    else if (line.includes('"event":"result"')) {
      const { event: _event, latencyMs, ...rest } = result.parse(JSON.parse(line))
      found = { ...rest, latencyMs: latencyMs ?? noQuantiles }
    }
  }
  const child = await startChild({ name: 'load', command: [options.program, ...argumentsOf(options)], onLine })
  const exit = await child.exited
  if (found === undefined) throw new Error(`the load generator ended with ${exit.code}: ${child.output().at(-1)}`)
  return found
}

const argumentsOf = (options: LoadOptions): readonly string[] => [
  `-target=${options.target}`,
  `-connections=${options.connections}`,
  `-body-bytes=${options.bodyBytes}`,
  `-warm-up=${options.warmUpSeconds}s`,
  'seconds' in options.length ? `-measured=${options.length.seconds}s` : `-count=${options.length.requests}`,
  `-rate=${options.ratePerSecond ?? 0}`,
  `-stream=${options.isStreamed}`,
  `-ids=${options.idsFile ?? ''}`,
  `-expect-session=${options.expectSession}`,
  `-create-ttl=${options.create?.ttlSeconds ?? 0}`,
  `-progress=${options.onProgress !== undefined}`,
]
