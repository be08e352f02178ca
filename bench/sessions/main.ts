/**
 * What a session costs in the session store: memory, lookups, creating and deleting, with few sessions and with many.
 * Prints tables and writes bench/out/sessions.json. Run with `make bench-sessions`; `--help` lists the options.
 */

import { createChildren } from '../../playground/child-process.ts'
import { machineNow, machineText, say, writeFigures } from '../bench-process.ts'
import { listOf, readOptions } from '../read-options.ts'
import { measureExpiries } from './expiries.ts'
import { type Footprint, fill } from './fill.ts'
import { measureOperations, type Timings } from './measure-operations.ts'
import { resultTable, type SizeFigures, sizeTable } from './report.ts'
import { openClusterStore, openMemoryStore, openRedisStore, type StoreUnderBench } from './stores.ts'
import { compareTurnRates } from './turn-rate.ts'

const values = readOptions('What sessions cost in the session store, and how that grows with their number.', {
  sizes: { value: 'N,…', meaning: 'numbers of sessions', default: '1000,100000,1000000' },
  rounds: { value: 'N', meaning: 'rounds', default: '15' },
  lookups: { value: 'N', meaning: 'lookups in each round, ten times as many in memory', default: '1000' },
  store: { value: 'NAME,…', meaning: 'stores to measure: redis, cluster, memory', default: 'redis,memory' },
  turns: {
    value: 'SECONDS',
    meaning: 'seconds of turns on one server and on a cluster by turns, 0 for none',
    default: '0',
  },
  expiries: { value: 'N', meaning: 'sessions that expire within a minute of turns, 0 for none', default: '0' },
})
const sizes = listOf(values.sizes).map(Number)
const rounds = Number(values.rounds)
const wanted = listOf(values.store)

const children = createChildren()

const stores = {
  redis: { open: () => openRedisStore(children), lookups: Number(values.lookups) },
  cluster: { open: openClusterStore, lookups: Number(values.lookups) },
  // An operation takes microseconds: more of them, for as long a time.
  memory: { open: openMemoryStore, lookups: Number(values.lookups) * 10 },
} as const

/** One store for each size, so that the sizes alternate within a round. */
interface Sized {
  readonly sessions: number
  readonly under: StoreUnderBench
  readonly footprint: Footprint
  readonly rounds: Timings[]
}

const measureStore = async (series: keyof typeof stores): Promise<readonly SizeFigures[]> => {
  const { open, lookups } = stores[series]
  const opened: Sized[] = []
  for (const sessions of sizes) {
    say(`${series}: writing ${sessions} sessions`)
    const under = await open(sessions)
    opened.push({ sessions, under, footprint: await fill(under, { series, sessions }), rounds: [] })
  }
  // The first round does not count: code is compiled in it.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { sessions, under, rounds: measured } of round % 2 === 0 ? opened : [...opened].reverse()) {
      const creates = Math.ceil(lookups / 5)
      const timings = await measureOperations(under.store, { series, sessions, lookups, creates, round })
      if (round === 0) await under.serverMicroseconds()
      else measured.push(timings)
    }
    if (round > 0) say(`${series}: round ${round} of ${rounds}`)
  }
  const figures: SizeFigures[] = []
  for (const { sessions, under, footprint, rounds: measured } of opened) {
    figures.push({ sessions, ...footprint, rounds: measured, serverMicroseconds: await under.serverMicroseconds() })
    await under.close()
  }
  await children.stop()
  return figures
}

const machine = machineNow()
const figures: Record<string, readonly SizeFigures[]> = {}
for (const name of ['redis', 'cluster', 'memory'] as const) {
  if (wanted.includes(name)) figures[name] = await measureStore(name)
}
process.stdout.write(
  [
    `${rounds} rounds ${machineText(machine)}`,
    ...Object.entries(figures).flatMap(([name, of]) => [`${name}: microseconds, median over rounds`, sizeTable(of)]),
    resultTable(figures),
    '',
  ].join('\n\n'),
)
const turnSeconds = Number(values.turns)
const expiring = Number(values.expiries)
const open = { redis: () => openRedisStore(children), cluster: openClusterStore } as const
if (turnSeconds > 0) process.stdout.write(`${await compareTurnRates(open, turnSeconds)}\n\n`)
if (expiring > 0) {
  for (const name of ['redis', 'cluster'] as const) {
    if (wanted.includes(name)) process.stdout.write(`${await measureExpiries(name, open[name], expiring)}\n\n`)
  }
}
await children.stop()
const loadAverageAfter = machineNow().loadAverage
await writeFigures('sessions.json', { machine: { ...machine, loadAverageAfter }, rounds, stores: figures })
