/**
 * What a session costs in the session store: memory, lookups, creating and deleting, with few sessions and with many.
 * Prints tables and writes bench/out/sessions.json. Run with `make bench-sessions`; `--help` lists the options.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { clearWhenInterrupted, createChildren } from '../gateway/children.ts'
import { readOptions } from '../read-options.ts'
import { type Footprint, fill } from './fill.ts'
import { measureOperations, type Timings } from './measure-operations.ts'
import { resultTable, type SizeFigures, sizeTable } from './report.ts'
import { openMemoryStore, openRedisStore, type StoreUnderBench } from './stores.ts'

const values = readOptions('What sessions cost in the session store, and how that grows with their number.', {
  sizes: { value: 'N,…', meaning: 'numbers of sessions', default: '1000,100000,1000000' },
  rounds: { value: 'N', meaning: 'rounds', default: '15' },
  lookups: { value: 'N', meaning: 'lookups in each round, ten times as many in memory', default: '1000' },
  only: { value: 'STORE', meaning: 'redis or memory', default: 'redis,memory' },
})
const sizes = values.sizes.split(',').map(Number)
const rounds = Number(values.rounds)
const wanted = values.only.split(',')

const say = (line: string): void => void process.stderr.write(`${line}\n`)
const children = createChildren()
const directory = await mkdtemp(join(tmpdir(), 'bench-sessions-'))

const stores = {
  redis: {
    open: (sessions: number) => openRedisStore({ children, directory: join(directory, String(sessions)) }),
    lookups: Number(values.lookups),
  },
  memory: {
    open: async (sessions: number) => openMemoryStore(sessions),
    // An operation takes microseconds: more of them, for as long a time.
    lookups: Number(values.lookups) * 10,
  },
} as const

/** One store for each size, so that the sizes alternate within a round. */
interface Sized {
  readonly sessions: number
  readonly under: StoreUnderBench
  readonly footprint: Footprint
  readonly rounds: Timings[]
}

const measureStore = async (name: keyof typeof stores): Promise<readonly SizeFigures[]> => {
  const { open, lookups } = stores[name]
  const opened: Sized[] = []
  try {
    for (const sessions of sizes) {
      say(`${name}: writing ${sessions} sessions`)
      const under = await open(sessions)
      const onProgress = (done: number): void => say(`${name}: ${done} of ${sessions}`)
      const footprint = await fill(under.store, { series: name, sessions, usedBytes: under.usedBytes, onProgress })
      opened.push({ sessions, under, footprint, rounds: [] })
    }
    // The first round does not count: code is compiled in it.
    for (let round = 0; round <= rounds; round += 1) {
      for (const { sessions, under, rounds: measured } of round % 2 === 0 ? opened : [...opened].reverse()) {
        const creates = Math.ceil(lookups / 5)
        const timings = await measureOperations(under.store, { series: name, sessions, lookups, creates, round })
        if (round === 0) await under.serverMicroseconds()
        else measured.push(timings)
      }
      if (round > 0) say(`${name}: round ${round} of ${rounds}`)
    }
    const figures: SizeFigures[] = []
    for (const { sessions, under, footprint, rounds: measured } of opened) {
      figures.push({ sessions, ...footprint, rounds: measured, serverMicroseconds: await under.serverMicroseconds() })
    }
    return figures
  } finally {
    for (const { under } of opened) await under.close()
    await children.stop()
  }
}

const clear = async (): Promise<void> => {
  await children.stop()
  await rm(directory, { recursive: true, force: true })
}
clearWhenInterrupted(clear)

try {
  const loadBefore = loadavg()
  const figures: Record<string, readonly SizeFigures[]> = {}
  for (const name of ['redis', 'memory'] as const) {
    if (wanted.includes(name)) figures[name] = await measureStore(name)
  }
  const loadAfter = loadavg()
  process.stdout.write(
    [
      `${rounds} rounds on ${cpus().length} processors, load average ${loadBefore[0]?.toFixed(1)} before, ${loadAfter[0]?.toFixed(1)} after, Node ${process.version}`,
      ...Object.entries(figures).flatMap(([name, of]) => [`${name}: microseconds, median over rounds`, sizeTable(of)]),
      resultTable(figures),
      '',
    ].join('\n\n'),
  )
  const out = join(packageRoot(), 'bench/out')
  await mkdir(out, { recursive: true })
  const machine = { processors: cpus().length, model: cpus()[0]?.model, load: { before: loadBefore, after: loadAfter } }
  await writeFile(
    join(out, 'sessions.json'),
    `${JSON.stringify({ machine, node: process.version, rounds, stores: figures }, null, 2)}\n`,
  )
} finally {
  await clear()
}
