import { Redis } from 'ioredis'
import type { Children } from '../../playground/child-process.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { createRedisConnection } from '../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../src/redis/redis-connection.ts'
import { createMemorySessionStore } from '../../src/sessions/memory/create-memory-session-store.ts'
import { createRedisSessionStore } from '../../src/sessions/redis/create-redis-session-store.ts'
import { startTestRedisCluster } from '../../test/support/redis-cluster/start-test-redis-cluster.ts'
import type { BenchedStore } from './realistic-sessions.ts'

export interface StoreUnderBench {
  readonly store: BenchedStore
  /** Memory in use now. */
  readonly usedBytes: () => Promise<number>
  /** Mean time of a script in the server since the last call of this function; undefined without a server. */
  readonly serverMicroseconds: () => Promise<number | undefined>
  readonly close: () => Promise<void>
}

const roomForMore = 250_000

/** In this process. Needs `--expose-gc`. */
export const openMemoryStore = async (sessions: number): Promise<StoreUnderBench> => ({
  store: createMemorySessionStore({ maxSessions: sessions + roomForMore }),
  usedBytes: async () => {
    globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  },
  serverMicroseconds: async () => undefined,
  close: async () => {},
})

/** Not the gateway's own limit: the bench measures a slow answer. */
const commandTimeoutMs = 30_000

const onFault = (error: Error): void => void process.stderr.write(`${error.message}\n`)

/** The sum over servers of what each says of itself. */
const sumOf = async (nodes: readonly Redis[], section: string, pattern: RegExp): Promise<readonly number[]> => {
  const sums: number[] = []
  for (const node of nodes) {
    for (const [index, text] of (pattern.exec(await node.info(section)) ?? []).slice(1).entries()) {
      sums[index] = (sums[index] ?? 0) + Number(text)
    }
  }
  return sums
}

const underBench = (
  connection: RedisConnection,
  partitions: number,
  { nodes, close }: { readonly nodes: readonly Redis[]; readonly close: () => Promise<void> },
): StoreUnderBench => ({
  store: createRedisSessionStore({ connection, partitions }),
  usedBytes: async () => (await sumOf(nodes, 'memory', /^used_memory:(\d+)/m))[0] ?? Number.NaN,
  serverMicroseconds: async () => {
    const [calls, microseconds] = await sumOf(nodes, 'commandstats', /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m)
    for (const node of nodes) await node.config('RESETSTAT')
    return (microseconds ?? Number.NaN) / (calls ?? Number.NaN)
  },
  close: async () => {
    await connection.close()
    await close()
  },
})

/** A Redis of its own with the session store on it. */
export const openRedisStore = async (children: Children): Promise<StoreUnderBench> => {
  const { url } = await startRedis({ children })
  const connection = await createRedisConnection({ url, commandTimeoutMs, onFault })
  const admin = new Redis(url)
  return underBench(connection, 1, { nodes: [admin], close: async () => admin.disconnect() })
}

/** Partitions of a new store in a cluster, as the gateway makes them. */
const partitionsOfCluster = 64

/** Three primaries without replicas, which would take their processors. */
export const openClusterStore = async (): Promise<StoreUnderBench> => {
  const cluster = await startTestRedisCluster({ replicas: 0 })
  const connection = await createRedisConnection({
    url: cluster.url,
    topology: { kind: 'cluster' },
    commandTimeoutMs,
    onFault,
  })
  const nodes = cluster.nodes.map(({ raw }) => raw)
  return underBench(connection, partitionsOfCluster, { nodes, close: () => cluster.close() })
}
