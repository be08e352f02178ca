import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Cell, Load } from './cells.ts'
import { type LoadOptions, type LoadResult, runLoad } from './load-run.ts'
import { type ProcessUsage, usageOf } from './process-usage.ts'
import type { Target, Upstream } from './targets.ts'

/** One measurement. Times are milliseconds. */
export interface Figures {
  readonly requests: number
  /** Failed requests, and requests that reached the upstream without the expected mark or field. */
  readonly failures: number
  readonly firstFailure: string | undefined
  readonly ratePerSecond: number
  readonly p50: number
  readonly p99: number
  /** CPU seconds for 1,000 requests. */
  readonly pluginCpu: number
  readonly envoyCpu: number
  readonly redisCpu: number
  readonly pluginBytes: number
  /** Streamed answers: time from one event to the next. */
  readonly gapP50: number
  readonly gapMean: number
  readonly gapP99: number
  readonly firstEventP50: number
}

/** The figures that are reported with their spread. */
export type FigureName = Exclude<keyof Figures, 'firstFailure'>

const connections = 32
/** The work that a gateway does after an answer, such as ending the turn, counts for the request. */
const settleMs = 150

export const measureCell = async (
  cell: Cell,
  options: {
    readonly target: Target
    readonly upstream: Upstream
    readonly program: string
    readonly seconds: number
    readonly warmUpSeconds: number
  },
): Promise<Figures> => {
  const { target, upstream } = options
  const counted = await countsOf(upstream)
  let before: Promise<Usages> | undefined
  const result = await runLoad({
    ...loadOptions(cell.load, target),
    program: options.program,
    warmUpSeconds: options.warmUpSeconds,
    length: { seconds: options.seconds },
    onMeasuring: () => {
      before = usagesOf(target)
    },
  })
  await delay(settleMs)
  const after = await usagesOf(target)
  if (before === undefined) throw new Error('the load generator never began to measure')
  const unexpectedRequests = await countUnexpected(target, upstream, counted)
  return figuresOf({ result, before: await before, after, unexpectedRequests })
}

/** How a target is loaded, without the duration. */
export const loadOptions = (load: Load, target: Target): Omit<LoadOptions, 'program' | 'warmUpSeconds' | 'length'> => ({
  target: target.address,
  connections,
  bodyBytes: load.bodyBytes,
  ratePerSecond: load.kind === 'paced' ? load.ratePerSecond : undefined,
  isStreamed: load.kind === 'stream',
  idsFile: target.idsFile,
  expectSession: target.idsFile !== undefined,
})

interface Usages {
  readonly plugin: ProcessUsage
  readonly envoy: ProcessUsage
  readonly redis: ProcessUsage
}

const noUsage: ProcessUsage = { cpuSeconds: 0, residentBytes: 0 }

const usagesOf = async ({ pluginPid, envoyPid, redisPid }: Target): Promise<Usages> => {
  const [plugin, envoy, redis] = await Promise.all(
    [pluginPid, envoyPid, redisPid].map(async (pid) => (pid === undefined ? noUsage : usageOf(pid))),
  )
  return { plugin: plugin ?? noUsage, envoy: envoy ?? noUsage, redis: redis ?? noUsage }
}

const counts = z.object({ requests: z.number(), marked: z.number(), spliced: z.number() })
type Counts = z.infer<typeof counts>

const countsOf = async ({ addresses: [address] }: Upstream): Promise<Counts> =>
  counts.parse(await (await fetch(`http://${address}/counts`)).json())

/** Requests that reached the upstream without the mark or field that the target adds, or with one that it does not add. */
const countUnexpected = async (target: Target, upstream: Upstream, before: Counts): Promise<number> => {
  const after = await countsOf(upstream)
  const since = (name: keyof Counts): number => after[name] - before[name]
  const marked = target.arrives === 'marked' ? since('requests') : 0
  const spliced = target.arrives === 'spliced' ? since('requests') : 0
  return Math.abs(since('marked') - marked) + Math.abs(since('spliced') - spliced)
}

const figuresOf = (seen: {
  readonly result: LoadResult
  readonly before: Usages
  readonly after: Usages
  readonly unexpectedRequests: number
}): Figures => {
  const { result, before, after, unexpectedRequests } = seen
  const perThousand = (name: keyof Usages): number =>
    ((after[name].cpuSeconds - before[name].cpuSeconds) / result.requests) * 1000
  return {
    requests: result.requests,
    failures: result.failures + unexpectedRequests,
    firstFailure:
      result.firstFailure ??
      (unexpectedRequests > 0
        ? `${unexpectedRequests} requests reached the upstream without the expected mark or field`
        : undefined),
    ratePerSecond: result.requests / result.seconds,
    p50: result.latencyMs.p50,
    p99: result.latencyMs.p99,
    pluginCpu: perThousand('plugin'),
    envoyCpu: perThousand('envoy'),
    redisCpu: perThousand('redis'),
    pluginBytes: after.plugin.residentBytes,
    gapP50: result.gapMs?.p50 ?? Number.NaN,
    gapMean: result.gapMs?.mean ?? Number.NaN,
    gapP99: result.gapMs?.p99 ?? Number.NaN,
    firstEventP50: result.firstEventMs?.p50 ?? Number.NaN,
  }
}
