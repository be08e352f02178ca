/**
 * What a turn costs in each wiring, beside Envoy alone and a minimal external processor in Go, in one interleaved run.
 * Prints tables and writes bench/out/gateway.json. Run with `make bench-gateway`; `--help` lists the options.
 */

import { availableParallelism } from 'node:os'
import { createChildren } from '../../playground/child-process.ts'
import { findEnvoy } from '../../playground/install/find-envoy.ts'
import { toolsDir } from '../../playground/paths.ts'
import { machineNow, machineText, say, writeFigures } from '../bench-process.ts'
import { listOf, readOptions } from '../read-options.ts'
import { listCells } from './cells.ts'
import { goVersion } from './go-programs.ts'
import { measureRounds } from './measure-rounds.ts'
import { figureTables, resultTable } from './report.ts'
import { checkRounds } from './results.ts'
import { type SoakPhase, soak } from './soak.ts'
import { startTargets, type TargetOptions } from './start-targets.ts'
import { findTarget, targetName, wiringNames } from './targets.ts'

const values = readOptions(
  'What a turn costs, by ext_proc and as picker, beside Envoy alone and a minimal external processor in Go.',
  {
    rounds: { value: 'N', meaning: 'rounds', default: '5' },
    starts: { value: 'N', meaning: 'starts of all processes, each for an equal part of the rounds', default: '1' },
    seconds: { value: 'N', meaning: 'seconds of each measurement that count', default: '2' },
    'warm-up': { value: 'N', meaning: 'seconds of each measurement that do not count', default: '0.5' },
    'warm-up-requests': { value: 'N', meaning: 'requests to each target before the first round', default: '30000' },
    wiring: { value: 'NAME,…', meaning: 'wirings to measure', default: wiringNames.join() },
    only: {
      value: 'TEXT,…',
      meaning: 'only measurements whose name (closed 2k/go) contains one of these',
      default: '',
    },
    workers: { value: 'N', meaning: 'worker threads of each Envoy', default: String(availableParallelism()) },
    soak: {
      value: 'N',
      meaning: 'no rounds, but N turns as fast as possible, then creates; counts failures',
      default: '',
    },
    creates: { value: 'N', meaning: 'creates of a soak', default: '200000' },
    'create-rate': { value: 'N', meaning: 'creates per second of a soak', default: '400' },
  },
)

const wirings = wiringNames.filter((name) => listOf(values.wiring).includes(name))
if (wirings.length === 0) throw new Error(`--wiring must be ${wiringNames.join(', ')}`)
const envoyWorkers = Number(values.workers)

/** Sessions of a soak expire while it runs, so that the reaper works too. */
const createTtlSeconds = 60

type Common = Omit<TargetOptions, 'wants'>

const measureAll = async (common: Common): Promise<void> => {
  const [rounds, starts, seconds] = [Number(values.rounds), Number(values.starts), Number(values.seconds)]
  const cells = listCells(wirings, listOf(values.only))
  if (cells.length === 0) throw new Error('--only matches no measurement')
  const machine = machineNow()
  const durations = { rounds, starts, seconds }
  const [warmUpSeconds, warmUpRequests] = [Number(values['warm-up']), Number(values['warm-up-requests'])]
  const figures = await measureRounds({ ...common, ...durations, cells, warmUpSeconds, warmUpRequests })
  const results = wirings.map((wiring) => ({ wiring, results: checkRounds(figures, wiring) }))
  const versions = { envoy: envoy.version, go: goVersion() }
  process.stdout.write(
    [
      `${rounds} rounds of ${seconds} s, ${starts} start${starts === 1 ? '' : 's'}, ${machineText(machine)}; Envoy ${versions.envoy} (workers: ${envoyWorkers}), ${versions.go}`,
      figureTables(figures, [...new Set(cells.map(({ target }) => target))]),
      ...results.map(({ wiring, results: of }) => `${wiring}\n\n${resultTable(of)}`),
      '',
    ].join('\n\n'),
  )
  await writeFigures('gateway.json', {
    machine: { ...machine, loadAverageAfter: machineNow().loadAverage },
    versions,
    envoyWorkers,
    ...durations,
    figures: Object.fromEntries(figures),
    results,
  })
}

const soakAll = async (common: Common, turns: number): Promise<void> => {
  const names = wirings.map((wiring) => targetName(wiring, 'redis'))
  const { targets } = await startTargets({ ...common, wants: (name) => names.includes(name) })
  const phases: readonly SoakPhase[] = [
    { name: 'turns', requests: turns },
    {
      name: 'creates',
      requests: Number(values.creates),
      rate: Number(values['create-rate']),
      createTtl: createTtlSeconds,
    },
  ]
  for (const name of names) {
    for (const phase of phases.filter(({ requests }) => requests > 0)) {
      if ((await soak(findTarget(name, targets), phase)) > 0) process.exitCode = 1
    }
  }
}

const envoy = await findEnvoy({ env: process.env, toolsDir: toolsDir(), report: say })
const children = createChildren()
const common = { children, wirings, envoyWorkers }
await (values.soak === '' ? measureAll(common) : soakAll(common, Number(values.soak)))
await children.stop()
