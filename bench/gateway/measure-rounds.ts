import { say } from '../bench-process.ts'
import { type Cell, loads, orderOfRound } from './cells.ts'
import { runLoad } from './load.ts'
import { type Figures, measureCell } from './measure-cell.ts'
import type { Rounds } from './results.ts'
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
}

/** Measures every cell in every round. Two equal processes differ by some per cent all along: hence several starts. */
export const measureRounds = async (options: RoundsOptions): Promise<Rounds> => {
  const { cells, children, rounds } = options
  const figures = new Map<string, Figures[]>(cells.map(({ name }) => [name, []]))
  let round = 0
  for (let start = 1; start <= options.starts; start += 1) {
    const wants = (name: string): boolean => cells.some(({ target }) => target === name)
    const { upstream, targets } = await startTargets({ ...options, wants })
    for (const target of targets) await warmUp(target, options.warmUpRequests)
    for (; round < Math.round((rounds * start) / options.starts); round += 1) {
      for (const cell of orderOfRound(cells, round + 1)) {
        const measuring = measureCell(cell.load, { ...options, upstream, target: findTarget(cell.target, targets) })
        const measured = await Promise.race([measuring, children.untilOneEnds()])
        figures.get(cell.name)?.push(measured)
        say(`round ${round + 1} of ${rounds}: ${cell.name}: ${describe(measured)}`)
      }
    }
    await children.stop()
  }
  return figures
}

const describe = ({ ratePerSecond, p50, failures, firstFailure }: Figures): string => {
  const failed = failures > 0 ? `, ${failures} FAILED: ${firstFailure}` : ''
  return `${ratePerSecond.toFixed(0)}/s, p50 ${p50.toFixed(2)} ms${failed}`
}

/** Node.js compiles the hot path while it runs: the first seconds of a gateway do not count. */
const warmUp = async ({ name, address, ids, idIn }: Target, requests: number): Promise<void> => {
  say(`warming up: ${name}`)
  await runLoad({ ...loads['closed 2k'], target: address, ids, idIn, requests })
}
