import { z } from 'zod'
import { startChild } from '../../playground/child-process.ts'

/** Options of the load generator. */
export interface LoadOptions {
  readonly program: string
  /** `127.0.0.1:8000` */
  readonly target: string
  readonly bodyBytes: number
  readonly warmUpSeconds: number
  readonly length: { readonly seconds: number } | { readonly requests: number }
  /** Requests due per second. Undefined: each connection sends when the last request was answered. */
  readonly ratePerSecond?: number | undefined
  readonly isStreamed?: boolean
  /** File with the session ids to send. An answer without `x-session-id` is a failure then: its request bypassed the gateway. */
  readonly idsFile?: string | undefined
  /** Create a session with each request, instead of a turn. */
  readonly create?: { readonly ttlSeconds: number } | undefined
  /** Called when the warm-up is over. */
  readonly onMeasuring?: (() => void) | undefined
  /** Called every second. */
  readonly onProgress?: ((progress: { answered: number; failures: number; seconds: number }) => void) | undefined
}

const none = Number.NaN
/** Milliseconds. Missing when there was nothing to measure. */
const quantiles = z
  .object({ mean: z.number(), p50: z.number(), p99: z.number(), max: z.number() })
  .default({ mean: none, p50: none, p99: none, max: none })

const loadEvent = z.discriminatedUnion('event', [
  z.object({ event: z.literal('measuring') }),
  z.object({ event: z.literal('progress'), answered: z.number(), failures: z.number(), seconds: z.number() }),
  z.object({
    event: z.literal('result'),
    requests: z.number(),
    failures: z.number(),
    firstFailure: z.string().optional(),
    seconds: z.number(),
    latencyMs: quantiles,
    firstEventMs: quantiles,
    gapMs: quantiles,
  }),
])
export type LoadResult = Extract<z.infer<typeof loadEvent>, { readonly event: 'result' }>

const connections = 32

/** Runs the load generator as a child process until it ends. @throws Error when it printed no result */
export const runLoad = async (options: LoadOptions): Promise<LoadResult> => {
  let result: LoadResult | undefined
  const onLine = (line: string): void => {
    if (!line.startsWith('{"event"')) return
    const event = loadEvent.parse(JSON.parse(line))
    switch (event.event) {
      case 'measuring':
        options.onMeasuring?.()
        break
      case 'progress':
        options.onProgress?.(event)
        break
      case 'result':
        result = event
    }
  }
  const child = await startChild({ name: 'load', command: [options.program, ...argumentsOf(options)], onLine })
  const exit = await child.exited
  if (result === undefined) throw new Error(`the load generator ended with ${exit.code}: ${child.output().at(-1)}`)
  return result
}

const argumentsOf = ({ length, ...options }: LoadOptions): readonly string[] => [
  `-target=${options.target}`,
  `-connections=${connections}`,
  `-body-bytes=${options.bodyBytes}`,
  `-warm-up=${options.warmUpSeconds}s`,
  'seconds' in length ? `-measured=${length.seconds}s` : `-count=${length.requests}`,
  `-rate=${options.ratePerSecond ?? 0}`,
  `-stream=${options.isStreamed ?? false}`,
  `-ids=${options.idsFile ?? ''}`,
  `-create-ttl=${options.create?.ttlSeconds ?? 0}`,
  `-progress=${options.onProgress !== undefined}`,
]
