import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type LoadName, loads } from './cells.ts'
import { runLoad } from './load.ts'
import { type ProcessName, usagesOf } from './process-usage.ts'
import type { Target } from './targets.ts'

/** One measurement. Times are milliseconds. */
export type Figures = Awaited<ReturnType<typeof measureCell>>

/** The figures that are reported with their spread. */
export type FigureName = Exclude<keyof Figures, 'firstFailure'>

/** The work that a gateway does after an answer, such as ending the turn, counts for the request. */
const settleMs = 150

export const measureCell = async (
  load: LoadName,
  options: {
    readonly target: Target
    /** Address of the upstream. */
    readonly upstream: string
    readonly seconds: number
    readonly warmUpSeconds: number
  },
) => {
  const { target, upstream, seconds, warmUpSeconds } = options
  const plan = { ...loads[load], target: target.address, ids: target.ids, idIn: target.idIn }
  const counted = await countsOf(upstream)
  const warmUp = warmUpSeconds > 0 ? await runLoad({ ...plan, seconds: warmUpSeconds }) : undefined
  const before = await usagesOf(target.pids)
  const result = await runLoad({ ...plan, seconds })
  await delay(settleMs)
  const after = await usagesOf(target.pids)
  const unexpected = countUnexpected(target, counted, await countsOf(upstream))
  const reason = `${unexpected} requests reached the upstream without the expected mark, field or history`
  const { requests, latencyMs, gapMs } = result
  /** CPU seconds for 1,000 requests. */
  const cpu = (name: ProcessName): number => ((after[name].cpuSeconds - before[name].cpuSeconds) / requests) * 1000
  return {
    requests,
    failures: (warmUp?.failures ?? 0) + result.failures + unexpected,
    firstFailure: warmUp?.firstFailure ?? result.firstFailure ?? (unexpected > 0 ? reason : undefined),
    ratePerSecond: requests / result.seconds,
    p50: latencyMs.p50,
    p99: latencyMs.p99,
    pluginCpu: cpu('plugin'),
    envoyCpu: cpu('envoy'),
    redisCpu: cpu('redis'),
    pluginBytes: after.plugin.residentBytes,
    // Streamed answers: time from one event to the next.
    gapP50: gapMs.p50,
    gapMean: gapMs.mean,
    gapP99: gapMs.p99,
  }
}

const counts = z.object({ requests: z.number(), marked: z.number(), spliced: z.number(), shortest: z.number() })
type Counts = z.infer<typeof counts>

const countsOf = async (upstream: string): Promise<Counts> =>
  counts.parse(await (await fetch(`http://${upstream}/counts`)).json())

/**
 * Requests that reached the upstream without the mark or field that the target adds, or with one that it does not; and 1 if one
 * came without the history.
 */
const countUnexpected = ({ arrives, historyBytes = 0 }: Target, before: Counts, after: Counts): number => {
  const requests = after.requests - before.requests
  const excess = (name: 'marked' | 'spliced'): number =>
    Math.abs(after[name] - before[name] - (arrives === name ? requests : 0))
  return excess('marked') + excess('spliced') + (after.shortest < historyBytes ? 1 : 0)
}
