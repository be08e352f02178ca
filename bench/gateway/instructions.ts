import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Command, type CommandOutcome, runCommand } from '../../playground/run-command.ts'
import type { Cell } from './cells.ts'
import { runLoad } from './load-run.ts'
import { loadOptions } from './measure-cell.ts'
import type { Target } from './targets.ts'

/*
 * Instructions of Envoy for a request, counted by valgrind's callgrind: the same in every run, whatever else the machine does. They are no
 * measure of time, but tell what a line of envoy.yaml costs where seconds drown in noise.
 */

const timeoutMs = 60_000

/** Puts callgrind in front of an Envoy. It counts nothing until it is told to. */
export const underCallgrind = ([file, ...args]: Command, directory: string): Command => [
  'valgrind',
  '--quiet',
  '--tool=callgrind',
  '--instr-atstart=no',
  '--separate-threads=yes',
  `--callgrind-out-file=${join(directory, 'callgrind.%p')}`,
  file,
  ...args,
]

/** The first line says which version, if there is one. */
export const findCallgrind = (): Promise<CommandOutcome> =>
  runCommand({ command: ['valgrind', '--version'], env: process.env, timeoutMs })

/**
 * Sends so many requests, half as many before, and returns what Envoy's worker thread needed for each.
 * @throws Error when one fails
 */
export const countInstructions = async (
  { load }: Cell,
  options: {
    readonly target: Target
    readonly program: string
    readonly requests: number
    /** Where callgrind writes. */
    readonly directory: string
  },
): Promise<number> => {
  const { target, program, directory } = options
  const pid = String(target.envoyPid)
  const send = async (requests: number): Promise<void> => {
    const result = await runLoad({ ...loadOptions(load, target), program, warmUpSeconds: 0, length: { requests } })
    if (result.failures > 0) throw new Error(`${target.name}: ${result.failures} failed: ${result.firstFailure}`)
  }
  await send(Math.ceil(options.requests / 2))
  await control('--instr=on', pid)
  await send(options.requests)
  await control('--instr=off', pid)
  await control('--dump', pid)
  return (await busiestThread(directory, pid)) / options.requests
}

const control = async (action: string, pid: string): Promise<void> => {
  const outcome = await runCommand({ command: ['callgrind_control', action, pid], env: process.env, timeoutMs })
  if (!outcome.ok) throw new Error(outcome.reason)
}

/** Of the newest dump: each thread has a file, `callgrind.PID.DUMP-THREAD`. Threads that slept all the time count less than nothing. */
const busiestThread = async (directory: string, pid: string): Promise<number> => {
  const files = (await readdir(directory)).filter((name) => name.startsWith(`callgrind.${pid}.`))
  const dumpOf = (name: string): number => Number(name.split('.')[2]?.split('-')[0])
  const newest = Math.max(...files.map(dumpOf))
  const texts = await Promise.all(
    files.filter((name) => dumpOf(name) === newest).map((name) => readFile(join(directory, name), 'latin1')),
  )
  const totals = texts.map((text) => Number(/^totals: (\d+)/m.exec(text)?.[1]))
  return Math.max(...totals.filter(Number.isSafeInteger))
}

/** A line for each target, a column for each load. */
export const instructionTable = (
  counted: readonly { readonly cell: Cell; readonly instructions: number }[],
): string => {
  const loads = [...new Set(counted.map(({ cell }) => loadOf(cell)))]
  const targets = [...new Set(counted.map(({ cell }) => cell.target))]
  const text = (target: string, load: string): string => {
    const found = counted.find(({ cell }) => cell.target === target && loadOf(cell) === load)
    return found === undefined ? '–' : (found.instructions / 1000).toFixed(1)
  }
  return [
    `| thousand instructions of Envoy | ${loads.join(' | ')} |`,
    `| --- |${' ---: |'.repeat(loads.length)}`,
    ...targets.map((target) => `| ${target} | ${loads.map((load) => text(target, load)).join(' | ')} |`),
  ].join('\n')
}

const loadOf = ({ name }: Cell): string => name.slice(0, name.indexOf('/'))
