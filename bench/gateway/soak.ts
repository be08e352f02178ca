import { loads } from './cells.ts'
import { runLoad } from './load-run.ts'
import { loadOptions } from './measure-cell.ts'
import { usageOf } from './process-usage.ts'
import type { Target } from './targets.ts'

const secondsBetweenLines = 10

/** Sends so many requests as fast as they are answered. Resolves to how many of them failed. */
export const soak = async (
  target: Target,
  options: { readonly program: string; readonly requests: number },
): Promise<number> => {
  const { pluginPid } = target
  const residentMb = async (): Promise<string> =>
    pluginPid === undefined ? '–' : ((await usageOf(pluginPid)).residentBytes / 1_000_000).toFixed(0)
  const before = await residentMb()
  const result = await runLoad({
    ...loadOptions(loads['closed 2k'], target),
    program: options.program,
    warmUpSeconds: 0,
    length: { requests: options.requests },
    onProgress: ({ answered, failures, seconds }) => {
      if (Math.round(seconds) % secondsBetweenLines !== 0) return
      process.stderr.write(
        `${target.name}: ${answered} of ${options.requests}, ${failures} failed, ${seconds.toFixed(0)} s\n`,
      )
    },
  })
  process.stdout.write(
    `soak, ${target.name}: ${result.requests} answered, ${result.failures} failed, ` +
      `${(result.requests / result.seconds).toFixed(0)} requests/s, p50 ${result.latencyMs.p50.toFixed(2)} ms, ` +
      `p99 ${result.latencyMs.p99.toFixed(2)} ms, longest ${result.latencyMs.max.toFixed(0)} ms, ` +
      `gateway ${before} MB before, ${await residentMb()} MB after\n`,
  )
  if (result.firstFailure !== undefined) process.stdout.write(`first failure: ${result.firstFailure}\n`)
  return result.failures
}
