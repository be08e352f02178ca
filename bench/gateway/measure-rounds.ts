import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Cell, loads, orderOfRound } from './cells.ts'
import type { Rounds } from './expectations.ts'
import { runLoad } from './load-run.ts'
import { type Figures, loadOptions, measureCell } from './measure-cell.ts'
import { startTargets, type TargetOptions } from './start-targets.ts'
import { findTarget, type Target } from './targets.ts'

export interface RoundsOptions extends Omit<TargetOptions, 'wants'> {
  readonly cells: readonly Cell[]
  readonly rounds: number
  /** How often all processes are started, each time for an equal part of the rounds. */
  readonly starts: number
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Sent to every target after each start. */
  readonly warmUpRequests: number
  /** Progress, a line each. */
  readonly say: (line: string) => void
}

/** Measures every cell in every round. Two processes of one configuration differ by some per cent for as long as they run: hence more than one start. */
export const measureRounds = async (
  options: RoundsOptions,
): Promise<{ readonly figures: Rounds; readonly envoyVersion: string }> => {
  const figures = new Map<string, Figures[]>(options.cells.map(({ name }) => [name, []]))
  let envoyVersion = ''
  let round = 0
  for (let start = 1; start <= options.starts; start += 1) {
    const directory = join(options.directory, `start-${start}`)
    await mkdir(directory)
    const wants = (name: string): boolean => options.cells.some(({ target }) => target === name)
    const started = await startTargets({ ...options, directory, wants })
    envoyVersion = started.envoyVersion
    for (const target of started.targets) await warmUp(target, options)
    for (; round < Math.round((options.rounds * start) / options.starts); round += 1) {
      for (const cell of orderOfRound(options.cells, round + 1)) {
        options.children.expectRunning()
        const measured = await measureCell(cell, {
          target: findTarget(cell.target, started.targets),
          upstream: started.upstream,
          program: options.programs.load,
          seconds: options.seconds,
          warmUpSeconds: options.warmUpSeconds,
        })
        figures.get(cell.name)?.push(measured)
        options.say(`round ${round + 1} of ${options.rounds}: ${cell.name}: ${describe(measured)}`)
      }
    }
    await options.children.stop()
  }
  return { figures, envoyVersion }
}

const describe = ({ ratePerSecond, p50, failures, firstFailure }: Figures): string => {
  const failed = failures > 0 ? `, ${failures} FAILED: ${firstFailure}` : ''
  return `${ratePerSecond.toFixed(0)}/s, p50 ${p50.toFixed(2)} ms${failed}`
}

/** Node.js compiles the hot path while it runs: the first seconds of a gateway do not count. */
const warmUp = async (target: Target, options: RoundsOptions): Promise<void> => {
  options.say(`warming up: ${target.name}`)
  await runLoad({
    ...loadOptions(loads['closed 2k'], target),
    program: options.programs.load,
    warmUpSeconds: 0,
    length: { requests: options.warmUpRequests },
  })
}
