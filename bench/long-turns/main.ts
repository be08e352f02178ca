/**
 * What turns of long conversations cost the gateway with LMCache: what its thread of JavaScript computes for each, and how long a turn waits. The
 * connector is the real one, with KV events over ZeroMQ; the fleet is simulated and takes no time of its own. Prints a table and writes
 * bench/out/long-turns.json. Run with `make bench-long-turns`; docs/performance.md tells the options.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../playground/paths.ts'
import { createMemoryChunkLedger } from '../../src/kvcache/chunks/memory-chunk-ledger.ts'
import { createZmqKvEvents } from '../../src/kvcache/kv-events/create-zmq-kv-events.ts'
import { createEventSourcesClient } from '../../src/kvcache/kv-events/event-sources.ts'
import { createLmcacheConnector } from '../../src/kvcache/lmcache/connector.ts'
import { createMemoryTokenVault } from '../../src/kvcache/vault/memory-token-vault.ts'
import { clearWhenInterrupted } from '../clear-when-interrupted.ts'
import { readOptions } from '../read-options.ts'
import { startFleet } from './fleet.ts'
import { type BenchSession, measureSession, measureTogether, newSession } from './measure-session.ts'
import { type LengthFigures, togetherTable, turnsTable } from './report.ts'

const values = readOptions('What turns of long conversations cost a gateway with LMCache.', {
  tokens: { value: 'N,…', meaning: 'lengths of the first prompt', default: '2048,12288,32768,131072' },
  rounds: { value: 'N', meaning: 'rounds, each through all lengths, after five that do not count', default: '15' },
  'at-once': { value: 'N', meaning: 'sessions at once in the second table', default: '4' },
})
const lengths = values.tokens.split(',').map(Number)
const rounds = Number(values.rounds)
const atOnce = Number(values['at-once'])
const warmUpRounds = 5
const minuteMs = 60_000

const say = (line: string): void => void process.stderr.write(`${line}\n`)

const fleet = await startFleet()
const log = {
  debug: () => {},
  info: () => {},
  warn: (text: string, fields?: object) => say(`${text} ${JSON.stringify(fields)}`),
}
const pods = fleet.pods.map(({ address }) => address)
const sources = createEventSourcesClient()
const events = createZmqKvEvents({
  pods: () => pods,
  sourcesOf: (pod, signal) => sources.sourcesOf(pod, signal),
  log,
  pollMs: 50,
  retryMs: 50,
})
const connector = createLmcacheConnector({
  coordinator: fleet.coordinator,
  instances: new Map(fleet.pods.map(({ address, instance }) => [address, instance])),
  worldSize: 1,
  isolation: 'session',
  secret: 'a secret for a benchmark that is long enough',
  ledger: createMemoryChunkLedger(),
  vault: createMemoryTokenVault({ maxBytes: 1_000_000_000 }),
  events,
  hasEvents: true,
  pods: () => pods,
  callTimeoutMs: minuteMs,
  leaseMs: minuteMs,
  minTokens: 1,
  orphanGraceMs: minuteMs,
  vaultTtlMs: minuteMs,
  log,
})
const close = async (): Promise<void> => {
  await connector.close()
  await sources.close()
  fleet.stop()
}
clearWhenInterrupted(close)

/** Lengths take turns, so that a busy moment of the machine meets all of them. */
const measure = async (): Promise<ReadonlyMap<number, LengthFigures>> => {
  const figures = new Map<number, LengthFigures>(lengths.map((tokens) => [tokens, { sessions: [], together: [] }]))
  let seed = 0
  const next = (tokens: number): BenchSession => {
    seed += 1
    return newSession(fleet.model, seed, tokens)
  }
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    for (const [tokens, { sessions, together }] of figures) {
      const alone = await measureSession(fleet, connector, next(tokens))
      const cpuMs = await measureTogether(
        fleet,
        connector,
        Array.from({ length: atOnce }, () => next(tokens)),
      )
      if (round < 0) continue
      sessions.push(alone)
      together.push(cpuMs)
    }
    say(round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`)
  }
  return figures
}

try {
  while (!pods.every((pod) => events.isLive(pod))) await new Promise((resolve) => setTimeout(resolve, 20))
  const figures = await measure()
  console.log(turnsTable(figures))
  console.log(`\n${togetherTable(figures, atOnce)}`)
  const folder = join(packageRoot(), 'bench', 'out')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'long-turns.json'), JSON.stringify(Object.fromEntries(figures), undefined, 2))
} finally {
  await close()
}
