/**
 * What a session costs in the session store: memory, lookups, creating and deleting, with few sessions and with many; and what lookups
 * feel of sessions that expire. Prints tables and writes bench/out/sessions.json. Run with `make bench-sessions`; docs/performance.md
 * tells the options.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { clearWhenInterrupted } from '../clear-when-interrupted.ts'
import { createChildren } from '../gateway/children.ts'
import { readOptions } from '../read-options.ts'
import { type ExpiryFigures, measureExpiry } from './expiry.ts'
import type { SizeFigures, StoreFigures } from './figures.ts'
import { type Footprint, fill } from './fill.ts'
import { measureOperations, type Timings } from './measure-operations.ts'
import { startMemoryStore } from './memory-store.ts'
import { startRedisStore } from './redis-store.ts'
import { expiryTable, sizeTable, verdictTable } from './report.ts'

const values = readOptions('What sessions cost, and how that grows with their number.', {
  sizes: { value: 'N,…', meaning: 'numbers of sessions', default: '1000,100000,1000000' },
  rounds: { value: 'N', meaning: 'rounds', default: '15' },
  lookups: { value: 'N', meaning: 'lookups in each round, ten times as many in memory', default: '1000' },
  expiring: { value: 'N', meaning: 'sessions that expire; 0 leaves it out', default: '100000' },
  'expiry-seconds': { value: 'N', meaning: 'in how long they expire', default: '60' },
  only: { value: 'STORE', meaning: 'redis or memory', default: 'redis,memory' },
})
const sizes = values.sizes.split(',').map(Number)
const rounds = Number(values.rounds)
const lookups = Number(values.lookups)
const creates = Math.ceil(lookups / 5)
const expiry = { expiring: Number(values.expiring), calmSeconds: 10, expirySeconds: Number(values['expiry-seconds']) }
const wanted = values.only.split(',')
const series = 'redis'

const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** One store for each size, so that the sizes take turns. */
interface Sized {
  readonly sessions: number
  fill(): Promise<Footprint>
  measure(round: number): Promise<Timings>
  serverMicroseconds(): Promise<number | undefined>
  expire(secondsPerWrite: number): Promise<ExpiryFigures>
  close(): Promise<void>
}

const measureStore = async (name: string, open: (sessions: number) => Promise<Sized>): Promise<StoreFigures> => {
  const opened: Sized[] = []
  try {
    const filled: { readonly sized: Sized; readonly footprint: Footprint; readonly rounds: Timings[] }[] = []
    for (const sessions of sizes) {
      say(`${name}: writing ${sessions} sessions`)
      const sized = await open(sessions)
      opened.push(sized)
      filled.push({ sized, footprint: await sized.fill(), rounds: [] })
    }
    // One round that does not count: the code is compiled in it.
    for (let round = 0; round <= rounds; round += 1) {
      for (const { sized, rounds: measured } of round % 2 === 0 ? filled : [...filled].reverse()) {
        const timings = await sized.measure(round)
        if (round === 0) await sized.serverMicroseconds()
        else measured.push(timings)
      }
      if (round > 0) say(`${name}: round ${round} of ${rounds}`)
    }
    const figures: SizeFigures[] = []
    for (const { sized, footprint, rounds: measured } of filled) {
      figures.push({
        sessions: sized.sessions,
        ...footprint,
        rounds: measured,
        serverMicroseconds: await sized.serverMicroseconds(),
      })
    }
    const last = filled.at(-1)
    const secondsPerWrite = last?.footprint.secondsPerSession ?? 0
    return { sizes: figures, expiry: expiry.expiring > 0 ? await last?.sized.expire(secondsPerWrite) : undefined }
  } finally {
    for (const sized of opened) await sized.close()
  }
}

const children = createChildren()
const directory = await mkdtemp(join(tmpdir(), 'bench-sessions-'))

const openRedis = async (sessions: number): Promise<Sized> => {
  const onProgress = (text: string): void => say(`redis: ${text}`)
  const { store, ...redis } = await startRedisStore({ children, directory: join(directory, String(sessions)) })
  return {
    sessions,
    fill: () => {
      const progress = (written: number): void => onProgress(`${written} of ${sessions}`)
      return fill(store, { series, sessions, usedBytes: redis.usedBytes, onProgress: progress })
    },
    measure: (round) => measureOperations(store, { series, sessions, lookups, creates, round }),
    serverMicroseconds: redis.serverMicroseconds,
    expire: (secondsPerWrite) => measureExpiry(store, { ...expiry, series, sessions, secondsPerWrite, onProgress }),
    close: redis.close,
  }
}

const openMemory = async (sessions: number): Promise<Sized> => {
  const memory = await startMemoryStore({ sessions, onProgress: (text) => say(`memory: ${text}`) })
  return {
    sessions,
    fill: memory.fill,
    // An operation takes microseconds here: more of them, for as long a time.
    measure: (round) => memory.measure({ lookups: lookups * 10, creates: creates * 10, round }),
    serverMicroseconds: async () => undefined,
    expire: (secondsPerWrite) => memory.expire({ ...expiry, secondsPerWrite }),
    close: async () => memory.stop(),
  }
}

const clear = async (): Promise<void> => {
  await children.stop()
  await rm(directory, { recursive: true, force: true })
}
clearWhenInterrupted(clear)

try {
  const loadBefore = loadavg()
  const stores: Record<string, StoreFigures> = {}
  if (wanted.includes('redis')) stores['redis'] = await measureStore('redis', openRedis)
  await children.stop()
  if (wanted.includes('memory')) stores['memory'] = await measureStore('memory', openMemory)
  const loadAfter = loadavg()
  const named = Object.entries(stores)
  process.stdout.write(
    [
      `${rounds} rounds on ${cpus().length} processors, load average ${loadBefore[0]?.toFixed(1)} before, ${loadAfter[0]?.toFixed(1)} after, Node ${process.version}`,
      ...named.flatMap(([name, figures]) => [
        `${name}: microseconds, median over rounds`,
        sizeTable(figures),
        ...(figures.expiry === undefined
          ? []
          : [`${name}: ${expiry.expiring} sessions expire in ${expiry.expirySeconds} s`, expiryTable(figures.expiry)]),
      ]),
      verdictTable(stores),
      '',
    ].join('\n\n'),
  )
  const out = join(packageRoot(), 'bench/out')
  await mkdir(out, { recursive: true })
  const machine = { processors: cpus().length, model: cpus()[0]?.model, load: { before: loadBefore, after: loadAfter } }
  await writeFile(
    join(out, 'sessions.json'),
    `${JSON.stringify({ machine, node: process.version, rounds, stores }, null, 2)}\n`,
  )
} finally {
  await clear()
}
