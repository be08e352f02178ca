import { say } from '../bench-process.ts'
import { loads } from './cells.ts'
import { type LoadPlan, runLoad } from './load.ts'
import { processNames, usagesOf } from './process-usage.ts'
import type { Target } from './targets.ts'

/** One long run against a target. */
export interface SoakPhase extends Required<Pick<LoadPlan, 'requests'>>, Pick<LoadPlan, 'rate' | 'createTtl'> {
  readonly name: string
}

const secondsBetweenLines = 10

const titles = { plugin: 'gateway', envoy: 'Envoy', redis: 'Redis' } as const

/**
 * Sends the requests of a phase, and prints failed requests, rate, latencies, the resets between Envoy and the gateway,
 * and resident memory before and after. Resolves to the number of failed requests.
 */
export const soak = async (target: Target, phase: SoakPhase): Promise<number> => {
  const [memoryBefore, before] = [await usagesOf(target.pids), await resetsOf(target)]
  const { name, ...load } = phase
  const ids = phase.createTtl === undefined ? target.ids : []
  const plan = { ...loads['closed 2k'], ...load, target: target.address, ids, idIn: target.idIn }
  const result = await runLoad(plan, ({ requests, failures, seconds }) => {
    if (Math.round(seconds) % secondsBetweenLines !== 0) return
    say(`${target.name}, ${name}: ${requests} of ${phase.requests}, ${failures} failed, ${seconds.toFixed(0)} s`)
  })
  const [memoryAfter, after] = [await usagesOf(target.pids), await resetsOf(target)]
  const { requests, failures, firstFailure, seconds, latencyMs } = result
  const lines = [
    `soak, ${target.name}, ${name}: ${requests} answered, ${failures} failed`,
    `  ${(requests / seconds).toFixed(0)} requests/s, p50 ${latencyMs.p50.toFixed(2)} ms, p99 ${latencyMs.p99.toFixed(2)} ms, longest ${latencyMs.max.toFixed(0)} ms`,
    `  ${after.streams - before.streams} streams reset, ${after.connections - before.connections} connections closed with streams open`,
    ...processNames.map((process) => {
      const [megabytes, megabytesAfter] = [memoryBefore, memoryAfter].map(
        (usages) => usages[process].residentBytes / 1e6,
      )
      return `  ${titles[process]}: ${megabytes?.toFixed(0)} MB resident before, ${megabytesAfter?.toFixed(0)} MB after`
    }),
    ...(firstFailure === undefined ? [] : [`  first failure: ${firstFailure}`]),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  return failures
}

/** Envoy's own counts over all clusters that lead to the gateway. */
const resetsOf = async ({ adminAddress }: Target): Promise<Readonly<Record<'streams' | 'connections', number>>> => {
  const response = await fetch(`http://${adminAddress}/stats?filter=${encodeURIComponent('^cluster\\.gateway')}`)
  const text = await response.text()
  const sum = (pattern: RegExp): number =>
    [...text.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0)
  return {
    streams: sum(/\.upstream_rq_(?:rx|tx)_reset: (\d+)/g),
    connections: sum(/\.upstream_cx_destroy_with_active_rq: (\d+)/g),
  }
}
