import { loads } from './cells.ts'
import { type LoadOptions, runLoad } from './load-run.ts'
import { loadOptions } from './measure-cell.ts'
import { usageOf } from './process-usage.ts'
import type { Target } from './targets.ts'

/** One long run against a target. */
export interface SoakPhase {
  readonly name: string
  readonly requests: number
  /** Undefined: as fast as requests are answered. */
  readonly ratePerSecond: number | undefined
  readonly create?: LoadOptions['create']
}

const secondsBetweenLines = 10

/** Sends the requests of a phase, and prints failures, rate, latencies, memory, and the resets between Envoy and the gateway. Resolves to the number of failed requests. */
export const soak = async (target: Target, program: string, phase: SoakPhase): Promise<number> => {
  const { pluginPid, name } = target
  const residentMb = async (): Promise<string> =>
    pluginPid === undefined ? '–' : ((await usageOf(pluginPid)).residentBytes / 1_000_000).toFixed(0)
  const memoryBefore = await residentMb()
  const before = await resetsOf(target)
  const result = await runLoad({
    ...loadOptions(loads['closed 2k'], target),
    ...phase,
    idsFile: phase.create === undefined ? target.idsFile : undefined,
    program,
    warmUpSeconds: 0,
    length: { requests: phase.requests },
    onProgress: ({ answered, failures, seconds }) => {
      if (Math.round(seconds) % secondsBetweenLines !== 0) return
      process.stderr.write(
        `${name}, ${phase.name}: ${answered} of ${phase.requests}, ${failures} failed, ${seconds.toFixed(0)} s\n`,
      )
    },
  })
  const after = await resetsOf(target)
  process.stdout.write(
    `soak, ${name}, ${phase.name}: ${result.requests} answered, ${result.failures} failed, ` +
      `${after.streams - before.streams} streams reset and ${after.connections - before.connections} connections closed with streams open, ` +
      `${(result.requests / result.seconds).toFixed(0)} requests/s, p50 ${result.latencyMs.p50.toFixed(2)} ms, ` +
      `p99 ${result.latencyMs.p99.toFixed(2)} ms, maximum ${result.latencyMs.max.toFixed(0)} ms, ` +
      `gateway ${memoryBefore} MB before, ${await residentMb()} MB after\n`,
  )
  if (result.firstFailure !== undefined) process.stdout.write(`first failure: ${result.firstFailure}\n`)
  return result.failures
}

/** Envoy's own counts over all clusters that lead to the gateway. */
const resetsOf = async ({
  adminAddress,
}: Target): Promise<{ readonly streams: number; readonly connections: number }> => {
  const text = await (
    await fetch(`http://${adminAddress}/stats?filter=${encodeURIComponent('^cluster\\.gateway')}`)
  ).text()
  const sum = (pattern: RegExp): number =>
    [...text.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0)
  return {
    streams: sum(/\.upstream_rq_(?:rx|tx)_reset: (\d+)/g),
    connections: sum(/\.upstream_cx_destroy_with_active_rq: (\d+)/g),
  }
}
