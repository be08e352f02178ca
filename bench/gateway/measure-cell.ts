import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Cell, Load } from './cells.ts'
import { type LoadOptions, type LoadResult, runLoad } from './load-run.ts'
import { type ProcessUsage, usageOf } from './process-usage.ts'
import type { Target, Upstream } from './targets.ts'

/** One measurement. Times are milliseconds. */
export interface Figures {
  readonly requests: number
  /** Answers that were none, and requests that did not reach the upstream as they should. */
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
  /** Of a streamed answer: from one event to the next. */
  readonly gapP50: number
  readonly gapMean: number
  readonly gapP99: number
  readonly firstEventP50: number
}

/** What of a measurement is told with its spread. */
export type FigureName = Exclude<keyof Figures, 'firstFailure'>

const connections = 32
/** What a gateway still does for requests that were answered, such as the ends of their turns, belongs to them. */
const settleMs = 150

export const measureCell = async (
  cell: Cell,
  options: {
    readonly target: Target
    readonly upstream: Upstream
    readonly program: string
    readonly seconds: number
    readonly warmUpSeconds: number
    /** Whether the gateway writes a CPU profile of the measurement, which then is slower. */
    readonly isProfiled: boolean
  },
): Promise<Figures> => {
  const { target, upstream } = options
  const toggleProfile = (): void => {
    if (options.isProfiled && target.pluginPid !== undefined && target.idsFile !== undefined) {
      process.kill(target.pluginPid, 'SIGUSR2')
    }
  }
  const counted = await countsOf(upstream)
  let before: Promise<Usages> | undefined
  const result = await runLoad({
    ...loadOptions(cell.load, target),
    program: options.program,
    warmUpSeconds: options.warmUpSeconds,
    length: { seconds: options.seconds },
    onMeasuring: () => {
      toggleProfile()
      before = usagesOf(target)
    },
  })
  await delay(settleMs)
  const after = await usagesOf(target)
  toggleProfile()
  if (before === undefined) throw new Error('the load generator never began to measure')
  const strays = await strayRequests(target, upstream, counted)
  return figuresOf({ result, before: await before, after, strays })
}

/** How a target is loaded, apart from how long. */
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

const nobody: ProcessUsage = { cpuSeconds: 0, residentBytes: 0 }

const usagesOf = async ({ pluginPid, envoyPid, redisPid }: Target): Promise<Usages> => {
  const [plugin, envoy, redis] = await Promise.all(
    [pluginPid, envoyPid, redisPid].map(async (pid) => (pid === undefined ? nobody : usageOf(pid))),
  )
  return { plugin: plugin ?? nobody, envoy: envoy ?? nobody, redis: redis ?? nobody }
}

const counts = z.object({ requests: z.number(), marked: z.number(), spliced: z.number() })
type Counts = z.infer<typeof counts>

const countsOf = async ({ addresses: [address] }: Upstream): Promise<Counts> =>
  counts.parse(await (await fetch(`http://${address}/counts`)).json())

/** How many requests reached the upstream without what the target should have done to them, or with what it should not. */
const strayRequests = async (target: Target, upstream: Upstream, before: Counts): Promise<number> => {
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
  readonly strays: number
}): Figures => {
  const { result, before, after, strays } = seen
  const perThousand = (name: keyof Usages): number =>
    ((after[name].cpuSeconds - before[name].cpuSeconds) / result.requests) * 1000
  return {
    requests: result.requests,
    failures: result.failures + strays,
    firstFailure: result.firstFailure ?? (strays > 0 ? `${strays} requests arrived unlike the others` : undefined),
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
