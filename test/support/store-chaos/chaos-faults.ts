import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../eventually.ts'
import type { ClusterNode } from '../redis-cluster/cluster-node.ts'
import type { TestRedisCluster } from '../redis-cluster/start-test-redis-cluster.ts'
import type { ChaosStore } from './chaos-clients.ts'
import { type ChaosLedger, calmPeriod } from './chaos-ledger.ts'

export const faultNames = ['kill', 'freeze', 'cut', 'move a slot', 'add a node'] as const
export type FaultName = (typeof faultNames)[number]

export interface FaultParts {
  readonly cluster: TestRedisCluster
  readonly ledger: ChaosLedger
  readonly store: ChaosStore
  readonly random: () => number
  /** A key of each partition, by its number. */
  readonly keys: readonly string[]
  /** Resolves once every client reaches every partition again. */
  readonly untilServed: () => Promise<void>
}

const [keysAtOnce, movePauseMs] = [2, 40]

/** Causes one fault, waits until the cluster and its clients have recovered, and notes both stretches of time. */
export const causeFault = async (name: FaultName, parts: FaultParts): Promise<void> => {
  const { cluster, ledger, random, keys } = parts
  await ledger.secure(() => untilReplicasHaveAll(cluster))
  const before = await homesOf(parts)
  const calm = ledger.periods.at(-1)
  const chosen = Math.floor(random() * keys.length)
  const homeless = before.filter((node) => node.index < replicated)
  const victim = homeless[Math.floor(random() * homeless.length)] ?? before[0]
  if (victim === undefined || calm === undefined) throw new Error('no primary')
  // A primary that gives a slot away, or loses all: calls to it that are under way may fail.
  const isMove = name === 'move a slot' || name === 'add a node'
  const touched = isMove ? before[chosen] : victim
  const partitions = new Set(keys.flatMap((_key, partition) => (before[partition] === touched ? [partition] : [])))
  if (calm.homes !== undefined) calm.isSpread = before.some((node, partition) => node !== calm.homes?.[partition])
  const period = { name, beganMs: performance.now(), partitions, homes: before, isSpread: false }
  ledger.periods.push(period)
  await causes[name]({ ...parts, victim, chosen })
  await cluster.untilWell()
  await parts.untilServed()
  const after = await homesOf(parts)
  period.isSpread = after.some((node, partition) => !partitions.has(partition) && node !== before[partition])
  await ledger.settle(parts.store)
  ledger.periods.push(calmPeriod(after))
}

/** Nodes of the start: three primaries with a replica each. One that is added has none. */
const replicated = 6

const homesOf = ({ cluster, keys }: Pick<FaultParts, 'cluster' | 'keys'>): Promise<readonly ClusterNode[]> =>
  Promise.all(keys.map((key) => cluster.primaryOf(key)))

type Cause = (parts: FaultParts & { readonly victim: ClusterNode; readonly chosen: number }) => Promise<void>

const causes: Readonly<Record<FaultName, Cause>> = {
  kill: async ({ cluster, victim: { index } }) => {
    await cluster.kill(index)
    await cluster.untilReplaced(index)
    await cluster.restart(index)
  },
  freeze: async ({ cluster, victim: { index } }) => {
    cluster.pause(index)
    await cluster.untilReplaced(index)
    cluster.resume(index)
  },
  cut: async ({ cluster, victim: { index } }) => {
    cluster.cut(index)
    await cluster.untilReplaced(index)
    cluster.heal(index)
  },
  'move a slot': async (parts) => {
    const homes = await homesOf(parts)
    const others = homes.filter((home) => home !== homes[parts.chosen])
    const to = others[Math.floor(parts.random() * others.length)]
    if (to !== undefined) await move(parts, to)
  },
  'add a node': async (parts) => move(parts, await parts.cluster.addNode()),
}

/** A few keys at a time, with turns in between. */
const move = async (
  { cluster, keys, chosen }: Pick<FaultParts, 'cluster' | 'keys'> & { readonly chosen: number },
  to: ClusterNode,
): Promise<void> => {
  const migration = await cluster.migrate(await cluster.slotOf(keys[chosen] ?? ''), to.index)
  while ((await migration.move(keysAtOnce)) > 0) await delay(movePauseMs)
  await migration.end()
}

/** Waits until each replica has what its primary has now. */
const untilReplicasHaveAll = async (cluster: TestRedisCluster): Promise<void> => {
  const infos = await Promise.all(cluster.nodes.map(({ raw }) => raw.info('replication')))
  const offsets = new Map<string | undefined, number>()
  for (const [index, info] of infos.entries())
    if (info.includes('role:master'))
      offsets.set(String(cluster.nodes[index]?.port), offsetIn(info, 'master_repl_offset'))
  await eventually(async () => {
    for (const { raw } of cluster.nodes) {
      const info = await raw.info('replication')
      const needed = info.includes('role:slave') ? offsets.get(/master_port:(\d+)/.exec(info)?.[1]) : undefined
      if (needed !== undefined && offsetIn(info, 'slave_repl_offset') < needed) return false
    }
    return true
  })
}

const offsetIn = (info: string, field: string): number => Number(new RegExp(`${field}:(\\d+)`).exec(info)?.[1])
