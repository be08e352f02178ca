/**
 * What a turn through the gateway costs, beside Envoy alone and a minimal external processor in Go, in one interleaved run.
 * Prints tables and writes bench/out/gateway.json. Run with `make bench-gateway`; docs/performance.md tells the options.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { clearWhenInterrupted } from '../clear-when-interrupted.ts'
import { readOptions } from '../read-options.ts'
import { listCells } from './cells.ts'
import { type Children, createChildren } from './children.ts'
import { judge } from './expectations.ts'
import { buildGoPrograms, type GoPrograms } from './go-programs.ts'
import { countInstructions, findCallgrind, instructionTable, underCallgrind } from './instructions.ts'
import { measureRounds } from './measure-rounds.ts'
import { summariseProfiles } from './profile-summary.ts'
import { figureTables, verdictTable } from './report.ts'
import { soak } from './soak.ts'
import { startTargets, type TargetOptions } from './start-targets.ts'
import { type GatewayVariant, targetOf } from './targets.ts'

const values = readOptions('What a turn costs, beside Envoy alone and a minimal external processor in Go.', {
  rounds: { value: 'N', meaning: 'rounds', default: '5' },
  starts: {
    value: 'N',
    meaning: 'how often all processes are started, each time for an equal part of the rounds',
    default: '1',
  },
  seconds: { value: 'N', meaning: 'seconds of each measurement that count', default: '2' },
  'warm-up': { value: 'N', meaning: 'seconds of each measurement that do not', default: '0.5' },
  'warm-up-requests': { value: 'N', meaning: 'requests of each case before the first round', default: '30000' },
  only: { value: 'TEXT', meaning: 'only measurements whose name (closed 2k/redis) contains the text', multiple: true },
  variant: {
    value: 'NAME:KEY=VALUE,…',
    meaning: 'a gateway with these environment variables; default: as it is',
    multiple: true,
  },
  soak: { value: 'N', meaning: 'instead of the rounds: so many requests as fast as possible, counting failures' },
  target: { value: 'NAME', meaning: 'of --soak', default: 'redis' },
  profile: { value: 'FOLDER', meaning: 'where CPU profiles of every measurement of a gateway go' },
  instructions: {
    value: 'N',
    meaning: 'instead of the rounds: instructions of Envoy for each of N requests, by valgrind',
  },
  workers: { value: 'N', meaning: 'worker threads of every Envoy; else one for each processor' },
})

/** `http2:NAME=value,OTHER=value`; `default` or nothing is the gateway as it is. */
const readVariant = (text: string): GatewayVariant => {
  const colonAt = text.indexOf(':')
  const name = colonAt < 0 ? text : text.slice(0, colonAt)
  const settings = colonAt < 0 ? [] : text.slice(colonAt + 1).split(',')
  const pairs = settings.map((setting): [string, string] => {
    const equalsAt = setting.indexOf('=')
    if (equalsAt < 1) throw new Error(`--variant must look like name:NAME=value, not ${text}`)
    return [setting.slice(0, equalsAt), setting.slice(equalsAt + 1)]
  })
  return { name: name === 'default' ? '' : name, env: Object.fromEntries(pairs) }
}

const variants = (values.variant.length === 0 ? ['default'] : values.variant).map(readVariant)
const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** Envoy's own default, unless told. */
const envoyWorkers = Number(values.workers ?? availableParallelism())

type Common = Pick<
  TargetOptions,
  'programs' | 'children' | 'directory' | 'variants' | 'profileDirectory' | 'envoyWorkers'
>

const measureAll = async (common: Common): Promise<void> => {
  const rounds = Number(values.rounds)
  const starts = Number(values.starts)
  const cells = listCells(variants, values.only)
  if (cells.length === 0) throw new Error('--only matches nothing')
  const loadBefore = loadavg()
  const { figures, envoyVersion } = await measureRounds({
    ...common,
    cells,
    rounds,
    starts,
    seconds: Number(values.seconds),
    warmUpSeconds: Number(values['warm-up']),
    warmUpRequests: Number(values['warm-up-requests']),
    say,
  })
  const verdicts = variants.map((variant) => ({ variant: variant.name, verdicts: judge(figures, variant) }))
  const load = { before: loadBefore, after: loadavg() }
  const loadText = `load average ${loadBefore[0]?.toFixed(1)} before, ${load.after[0]?.toFixed(1)} after`
  process.stdout.write(
    [
      `${rounds} rounds of ${values.seconds} s, ${starts} start${starts === 1 ? '' : 's'}, on ${cpus().length} processors, ${loadText}; Envoy ${envoyVersion} (workers: ${envoyWorkers}), Node ${process.version}, ${common.programs.version}`,
      figureTables(figures, [...new Set(cells.map(({ target }) => target))]),
      ...verdicts.map(({ variant, verdicts: of }) => `${variant === '' ? '' : `${variant}\n\n`}${verdictTable(of)}`),
    ].join('\n\n'),
  )
  process.stdout.write('\n')
  // A profiled gateway is slower than it is.
  if (common.profileDirectory !== undefined) return
  const out = join(packageRoot(), 'bench/out')
  await mkdir(out, { recursive: true })
  const machine = { processors: cpus().length, model: cpus()[0]?.model, load, node: process.version }
  const versions = { envoy: envoyVersion, go: common.programs.version }
  await writeFile(
    join(out, 'gateway.json'),
    `${JSON.stringify({ machine, versions, envoyWorkers, rounds, starts, seconds: Number(values.seconds), figures: Object.fromEntries(figures), verdicts }, null, 2)}\n`,
  )
}

const soakAll = async (common: Common, requests: number): Promise<void> => {
  const { targets } = await startTargets({ ...common, wants: (name) => name.split(' [')[0] === values.target })
  for (const target of targets.filter(({ name }) => name.split(' [')[0] === values.target)) {
    if ((await soak(target, { program: common.programs.load, requests })) > 0) process.exitCode = 1
  }
}

const countAll = async (common: Common, requests: number): Promise<void> => {
  const callgrind = await findCallgrind()
  if (!callgrind.ok) throw new Error(`--instructions needs valgrind on PATH (${callgrind.reason})`)
  const { directory, programs } = common
  // By the clock no Envoy keeps up that is watched.
  const cells = listCells(variants, values.only).filter(({ load }) => load.kind !== 'paced')
  const { targets } = await startTargets({
    ...common,
    // What is counted is one thread.
    envoyWorkers: 1,
    wrapEnvoy: (command) => underCallgrind(command, directory),
    wants: (name) => cells.some(({ target }) => target === name),
  })
  const counted = []
  for (const cell of cells) {
    const target = targetOf(cell, targets)
    // A streamed answer has fifty events.
    const count = cell.load.kind === 'stream' ? Math.ceil(requests / 50) : requests
    const instructions = await countInstructions(cell, { target, program: programs.load, requests: count, directory })
    say(`${cell.name}: ${instructions.toFixed(0)} instructions per request`)
    counted.push({ cell, instructions })
  }
  process.stdout.write(`${callgrind.stdout.trim()}, ${requests} requests\n\n${instructionTable(counted)}\n`)
}

const withChildren = async (programs: GoPrograms, work: (common: Common) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'bench-gateway-'))
  const children: Children = createChildren()
  const clear = async (): Promise<void> => {
    await children.stop()
    await rm(directory, { recursive: true, force: true })
  }
  clearWhenInterrupted(clear)
  try {
    if (values.profile !== undefined) await mkdir(values.profile, { recursive: true })
    await work({ programs, children, directory, variants, profileDirectory: values.profile, envoyWorkers })
  } finally {
    await clear()
  }
  if (values.profile !== undefined) process.stdout.write(`${await summariseProfiles(values.profile)}\n`)
}

const go = await buildGoPrograms()
switch (go.kind) {
  case 'unavailable':
    process.stdout.write(
      `bench-gateway is skipped: its load generator, upstream and reference are written in Go, and ${go.reason}\n`,
    )
    break
  case 'built':
    await withChildren(go.programs, (common) => {
      if (values.soak !== undefined) return soakAll(common, Number(values.soak))
      if (values.instructions !== undefined) return countAll(common, Number(values.instructions))
      return measureAll(common)
    })
    break
}
