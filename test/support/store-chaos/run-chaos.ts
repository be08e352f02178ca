import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { newSession, sessionKey, tenantKey } from '../../contract/sessions/store-under-test.ts'
import { eventually } from '../eventually.ts'
import type { TestRedisCluster } from '../redis-cluster/start-test-redis-cluster.ts'
import { watchAnswers } from './answer-watch.ts'
import { type ChaosStore, graceMs, leaseMs, runClient, runSweeps, sweepOnce } from './chaos-clients.ts'
import { causeFault, type FaultName } from './chaos-faults.ts'
import { ChaosLedger } from './chaos-ledger.ts'
import type { ChaosSession } from './chaos-session.ts'

const partitionCount = 12
const gateways = 2
const clients = 6
const beaconTenant = tenantKey('beacons')
/** Leases of turns that nobody ended, graces of announced artefacts, and a gateway's time with a partition. */
const settledMs = leaseMs + graceMs + 30_000

/** What a chaos run came to. */
export interface ChaosOutcome {
  readonly ledger: ChaosLedger
  /** Artefacts that no live session has and that nothing would remove, though the store knows them. */
  readonly stuckArtefacts: readonly string[]
  /** Artefacts whose announcement replicas had, and that nobody knows or removed. */
  readonly lostAnnouncements: readonly string[]
  /** Announcements that replication lag lost: the store's comparison with what it knows finds them. */
  readonly orphans: number
  /** Turns that the store said it counted and that replication lag lost. */
  readonly lostTurns: number
  /** Keys that are left when all sessions are deleted. */
  readonly leftKeys: readonly string[]
}

/**
 * Clients of two gateways against a cluster of three primaries with a replica each, while `faults` follow each other.
 * `seed` chooses what clients do; how it interleaves differs from run to run.
 */
export const runChaos = async (options: {
  readonly cluster: TestRedisCluster
  readonly faults: Iterable<FaultName>
  readonly seed: number
  readonly commandTimeoutMs: number
  readonly say?: (text: string) => void
}): Promise<ChaosOutcome> => {
  const { cluster, commandTimeoutMs, say = () => undefined } = options
  const random = mulberry32(options.seed)
  const keyPrefix = `chaos:${options.seed}:`
  const open = async (): Promise<ChaosStore> =>
    createRedisSessionStore({
      connection: await cluster.connect({ keyPrefix, commandTimeoutMs }),
      partitions: partitionCount,
      supersededGraceMs: graceMs,
    })
  const stores = await Promise.all(Array.from({ length: gateways }, open))
  const [store] = stores
  if (store === undefined) throw new Error('no store')
  const beacons = await placeBeacons(store)
  const ended = new AbortController()
  const ledger = new ChaosLedger({ watch: watchAnswers(cluster.nodes, ended.signal), commandTimeoutMs })
  const partitionOf = ({ key }: Pick<ChaosSession, 'key'>): number | undefined => {
    const found = beacons.findIndex((beacon) => store.areTogether(beacon, key))
    return found < 0 ? undefined : found
  }
  const keys = await keysOf(cluster, keyPrefix, beacons)
  const untilServed = async (): Promise<void> => {
    for (const each of stores)
      for (const key of beacons)
        await eventually(async () => (await each.get({ key, tenant: beaconTenant })) !== undefined)
  }

  const parts = { stores, ledger, random, partitionOf, until: ended.signal }
  const running = Promise.all([
    ...Array.from({ length: clients }, (_none, client) => runClient(client, parts)),
    ...stores.map((each) => runSweeps(each, parts)),
  ])
  try {
    for (const name of options.faults) {
      say(`fault: ${name}`)
      await causeFault(name, { cluster, ledger, store, random, keys, untilServed })
    }
  } finally {
    ended.abort()
    await running
  }
  return { ledger, ...(await settle({ cluster, stores, ledger, beacons, keyPrefix })) }
}

/** A session of each partition, which no client touches. */
const placeBeacons = async (store: ChaosStore) => {
  await store.identity()
  const beacons: ReturnType<typeof sessionKey>[] = []
  for (let tried = 0; beacons.length < partitionCount; tried += 1) {
    const key = sessionKey(`b${tried.toString(36).padStart(3, 'x')}`)
    if (!beacons.some((beacon) => store.areTogether(beacon, key))) beacons.push(key)
  }
  for (const [index, key] of beacons.entries()) {
    const turnId = `beacon-${index}`
    await store.create(newSession({ key, tenant: beaconTenant, turnId }))
    const usage = { prompt: 1, output: 1, cached: 0 }
    await store.complete({ key, tenant: beaconTenant, turnId, pod: 'pod', usage, expiry: { kind: 'keep' } })
  }
  return beacons
}

/** The key of the sessions of each beacon's partition. */
const keysOf = async (cluster: TestRedisCluster, keyPrefix: string, beacons: readonly string[]) => {
  const found = await cluster.keys(`${keyPrefix}{*}:s`)
  return Promise.all(
    beacons.map(async (beacon) => {
      const has = await Promise.all(found.map((key) => cluster.raw.hexists(key, beacon.slice(0, 22))))
      return found[has.indexOf(1)] ?? ''
    }),
  )
}

/** Looks at all sessions, sweeps, deletes them, and sweeps again. */
const settle = async (parts: {
  readonly cluster: TestRedisCluster
  readonly stores: readonly ChaosStore[]
  readonly ledger: ChaosLedger
  readonly beacons: readonly ReturnType<typeof sessionKey>[]
  readonly keyPrefix: string
}): Promise<Omit<ChaosOutcome, 'ledger'>> => {
  const { cluster, stores, ledger, beacons, keyPrefix } = parts
  const [store] = stores
  if (store === undefined) throw new Error('no store')
  const sweep = async (): Promise<void> => {
    for (const each of stores) await sweepOnce(each, { ledger, random: Math.random, doneShare: 1 })
  }
  /** What is still found when everything that ends by itself has ended. */
  const lastOf = async (find: () => Promise<readonly string[]>): Promise<readonly string[]> => {
    let found: readonly string[] = []
    const isNone = async (): Promise<boolean> => {
      found = await find()
      return found.length === 0
    }
    await eventually(isNone, { timeoutMs: settledMs }).catch(() => undefined)
    return found
  }
  for (const session of ledger.sessions) {
    ledger.check(session, await store.get(session), session.expected())
  }

  const ids = [...ledger.artefacts.keys()]
  const stuck = async (): Promise<readonly string[]> => {
    await sweep()
    const known = await store.knownArtefacts(ids)
    const records = await Promise.all(ledger.sessions.map((session) => store.get(session)))
    const used = new Set(records.map((record) => record?.kv?.artefactId))
    return [...known].filter((id) => !used.has(id))
  }
  const stuckArtefacts = await lastOf(stuck)
  const known = await store.knownArtefacts(ids)
  const vanished = [...ledger.artefacts.values()].filter(
    ({ id, isAnnounced }) => isAnnounced && !known.has(id) && !ledger.claimed.has(id),
  )

  for (const session of ledger.sessions) await store.remove(session)
  for (const key of beacons) await store.remove({ key, tenant: beaconTenant })
  const left = async (): Promise<readonly string[]> => {
    await sweep()
    const found = await cluster.keys(`${keyPrefix}*`)
    return found.filter((key) => !/:(?:store|\{\d+\}:[sxw])$/.test(key))
  }
  return {
    stuckArtefacts,
    lostAnnouncements: vanished.flatMap(({ id, isSecured }) => (isSecured ? [id] : [])),
    orphans: ledger.orphans,
    lostTurns: ledger.sessions.reduce((sum, session) => sum + session.lostTurns, 0),
    leftKeys: await lastOf(left),
  }
}

const mulberry32 = (seed: number) => (): number => {
  seed = (seed + 0x6d_2b_79_f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}
