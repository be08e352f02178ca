/**
 * What a turn through the gateway costs in both wirings, beside Envoy alone and a minimal external processor in Go, in one interleaved run.
 * Prints tables and writes bench/out/gateway.json. Run with `make bench-gateway`; `--help` lists the options.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { readOptions } from '../read-options.ts'
import { listCells } from './cells.ts'
import { clearWhenInterrupted, createChildren } from './children.ts'
import { checkRounds } from './expectations.ts'
import { buildGoPrograms, type GoPrograms } from './go-programs.ts'
import { measureRounds } from './measure-rounds.ts'
import { figureTables, resultTable } from './report.ts'
import { soak } from './soak.ts'
import { startTargets, type TargetOptions } from './start-targets.ts'
import { findTarget, targetName, wiringNames } from './targets.ts'

const values = readOptions(
  'What a turn costs, by ext_proc and with the accelerator, beside Envoy alone and a minimal external processor in Go.',
  {
    rounds: { value: 'N', meaning: 'rounds', default: '5' },
    starts: { value: 'N', meaning: 'starts of all processes, each for an equal part of the rounds', default: '1' },
    seconds: { value: 'N', meaning: 'seconds of each measurement that count', default: '2' },
    'warm-up': { value: 'N', meaning: 'seconds of each measurement that do not count', default: '0.5' },
    'warm-up-requests': { value: 'N', meaning: 'requests to each target before the first round', default: '30000' },
    wiring: { value: 'NAME', meaning: `only this one: ${wiringNames.join(' or ')}`, multiple: true },
    only: { value: 'TEXT', meaning: 'only measurements whose name (closed 2k/go) contains the text', multiple: true },
    workers: { value: 'N', meaning: 'worker threads of each Envoy; default: one for each processor' },
    soak: { value: 'N', meaning: 'instead of the rounds: N turns as fast as possible, then creates; counts failures' },
    creates: { value: 'N', meaning: 'creates of a soak', default: '200000' },
    'create-rate': { value: 'N', meaning: 'creates per second of a soak', default: '400' },
  },
)

const wirings = wiringNames.filter((name) => values.wiring.length === 0 || values.wiring.includes(name))
if (wirings.length === 0) throw new Error(`--wiring must be ${wiringNames.join(' or ')}`)
const say = (line: string): void => void process.stderr.write(`${line}\n`)
const envoyWorkers = Number(values.workers ?? availableParallelism())

/** Sessions of a soak expire while it runs, so that the reaper works too. */
const createTtlSeconds = 60

type Common = Omit<TargetOptions, 'wants'>

const measureAll = async (common: Common): Promise<void> => {
  const [rounds, starts, seconds] = [Number(values.rounds), Number(values.starts), Number(values.seconds)]
  const cells = listCells(wirings, values.only)
  if (cells.length === 0) throw new Error('--only matches no measurement')
  const loadBefore = loadavg()
  const { figures, envoyVersion } = await measureRounds({
    ...common,
    cells,
    rounds,
    starts,
    seconds,
    warmUpSeconds: Number(values['warm-up']),
    warmUpRequests: Number(values['warm-up-requests']),
    say,
  })
  const results = wirings.map((wiring) => ({ wiring, results: checkRounds(figures, wiring) }))
  const load = { before: loadBefore, after: loadavg() }
  const loadText = `load average ${loadBefore[0]?.toFixed(1)} before, ${load.after[0]?.toFixed(1)} after`
  process.stdout.write(
    [
      `${rounds} rounds of ${seconds} s, ${starts} start${starts === 1 ? '' : 's'}, on ${cpus().length} processors, ${loadText}; Envoy ${envoyVersion} (workers: ${envoyWorkers}), Node ${process.version}, ${common.programs.version}`,
      figureTables(figures, [...new Set(cells.map(({ target }) => target))]),
      ...results.map(({ wiring, results: of }) => `${wiring}\n\n${resultTable(of)}`),
      '',
    ].join('\n\n'),
  )
  const out = join(packageRoot(), 'bench/out')
  await mkdir(out, { recursive: true })
  const machine = { processors: cpus().length, model: cpus()[0]?.model, load, node: process.version }
  const versions = { envoy: envoyVersion, go: common.programs.version }
  await writeFile(
    join(out, 'gateway.json'),
    `${JSON.stringify({ machine, versions, envoyWorkers, rounds, starts, seconds, figures: Object.fromEntries(figures), results }, null, 2)}\n`,
  )
}

const soakAll = async (common: Common, turns: number): Promise<void> => {
  const names = wirings.map((wiring) => targetName(wiring, 'redis'))
  const { targets } = await startTargets({ ...common, wants: (name) => names.includes(name) })
  const creates = Number(values.creates)
  const ratePerSecond = Number(values['create-rate'])
  const phases = [
    { name: 'turns', requests: turns, ratePerSecond: undefined },
    { name: 'creates', requests: creates, ratePerSecond, create: { ttlSeconds: createTtlSeconds } },
  ].filter(({ requests }) => requests > 0)
  for (const name of names) {
    for (const phase of phases) {
      if ((await soak(findTarget(name, targets), common.programs.load, phase)) > 0) process.exitCode = 1
    }
  }
}

const withChildren = async (programs: GoPrograms): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'bench-gateway-'))
  const children = createChildren()
  const clear = async (): Promise<void> => {
    await children.stop()
    await rm(directory, { recursive: true, force: true })
  }
  clearWhenInterrupted(clear)
  const common: Common = { programs, children, directory, wirings, envoyWorkers }
  try {
    await (values.soak === undefined ? measureAll(common) : soakAll(common, Number(values.soak)))
  } finally {
    await clear()
  }
}

const go = await buildGoPrograms()
switch (go.kind) {
  case 'unavailable':
    process.stdout.write(
      `bench-gateway is skipped: its load generator, upstream and reference are written in Go, and ${go.reason}\n`,
    )
    break
  case 'built':
    await withChildren(go.programs)
    break
}
