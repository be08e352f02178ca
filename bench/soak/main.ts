/**
 * Mixed real traffic and faults on real parts, for MINUTES (default 30): Envoy, two gateways, three pods, Redis. Prints
 * a table, and ends with 1 where a request that could be answered failed, or something that nobody owns was left.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createChildren } from '../../playground/child-process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { machineNow, machineText, say } from '../bench-process.ts'
import { readOptions } from '../read-options.ts'
import { causeFaults } from './faults.ts'
import { Ledger } from './ledger.ts'
import { memoryInUse } from './memory-in-use.ts'
import { growthOf, sampleOf, type Watched } from './process-samples.ts'
import { noteRedisStalls } from './redis-stalls.ts'
import { soakReport } from './report.ts'
import { leaseSeconds, type SoakStack, startSoakStack, tombstoneSeconds } from './soak-stack.ts'
import { deleteAll, sendTraffic } from './traffic.ts'

const options = readOptions('Mixed traffic with faults on real parts.', {
  minutes: { value: 'N', meaning: 'how long', default: process.env['MINUTES'] || '30' },
})
const minutes = Number(options.minutes)
const sampleEveryMs = 2_000
/** A collection stops the process for some tens of milliseconds. */
const collectEveryMs = 10_000
/** In a shorter run caches still fill. */
const leastMinutesForMemory = 20
const mostGrowth = 0.05

const folder = mkdtempSync(join(tmpdir(), 'bench-soak-'))
const children = createChildren()
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
for (const [signal, status] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
  process.once(signal, () => process.exit(status))

/** Keys that stay: what was learnt, the store's name, ledgers of slots and repeated creates, which Redis forgets itself. */
const isKept = (key: string): boolean => /^ctx:(?:store|routing:costs:.*|kv:slots:.*|\{\d+\}:[rwx])$/.test(key)

const redisLeftovers = async (url: string): Promise<readonly string[]> => {
  const redis = new Redis(url)
  try {
    return (await redis.keys('*')).filter((key) => !isKept(key))
  } finally {
    redis.disconnect()
  }
}

/** KV files and keys of Redis that are still there when every lease and tombstone has ended. */
const leftoversOf = async (stack: SoakStack) => {
  const find = async () => ({ files: await stack.kvFiles(), keys: await redisLeftovers(stack.redisUrl) })
  const timeoutMs = (leaseSeconds + tombstoneSeconds + 60) * 1_000
  const isClean = async (): Promise<boolean> => {
    const { files, keys } = await find()
    return files.length + keys.length === 0
  }
  await eventually(isClean, { timeoutMs }).catch(() => undefined)
  return find()
}

const run = async (): Promise<boolean> => {
  const machine = machineNow()
  const stack = await startSoakStack(children, folder)
  const watched: readonly Watched[] = [
    { name: 'Envoy', child: () => stack.envoy, samples: [] },
    ...[...stack.gateways, stack.redis, ...stack.pods].map((process) => ({
      name: process.name,
      child: () => process.child(),
      samples: [],
    })),
  ]
  const ledger = new Ledger()
  const until = AbortSignal.timeout(minutes * 60_000)
  const sample = async (): Promise<void> => {
    while (!until.aborted) {
      for (const each of watched) {
        const found = await sampleOf(each.child())
        if (found !== undefined) each.samples.push(found)
      }
      await delay(sampleEveryMs, undefined, { signal: until }).catch(() => undefined)
    }
  }
  const inUse: number[] = []
  const collect = async (): Promise<void> => {
    while (!until.aborted) {
      inUse.push(await memoryInUse(stack.inspectorPort))
      await delay(collectEveryMs, undefined, { signal: until }).catch(() => undefined)
    }
  }
  say(`soak of ${minutes} minutes at ${stack.url}`)
  const watch = noteRedisStalls(stack.redisUrl, ledger)
  const faults = causeFaults(stack, ledger, until)
  await Promise.all([sendTraffic({ stack, ledger, until }), faults, sample(), collect()])
  await watch.terminate()
  say('traffic has ended; waiting until nothing is owned')
  await deleteAll(stack)
  const leftovers = await leftoversOf(stack)
  process.stdout.write(`${soakReport({ ledger, watched, inUse, leftovers, minutes, machine: machineText(machine) })}\n`)
  const isFlat = minutes < leastMinutesForMemory || growthOf(inUse) <= mostGrowth
  return ledger.unexcused.length === 0 && leftovers.files.length + leftovers.keys.length === 0 && isFlat
}

try {
  process.exitCode = (await run()) ? 0 : 1
} finally {
  await children.stop()
}
