import { Redis } from 'ioredis'
import type { Children } from '../../playground/child-process.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { createRedisConnection } from '../../src/redis/create-redis-connection.ts'
import { createMemorySessionStore } from '../../src/sessions/memory/create-memory-session-store.ts'
import { createRedisSessionStore } from '../../src/sessions/redis/create-redis-session-store.ts'
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

/** A Redis of its own with the session store on it. */
export const openRedisStore = async (children: Children): Promise<StoreUnderBench> => {
  const { url } = await startRedis({ children })
  const onFault = (error: Error): void => void process.stderr.write(`${error.message}\n`)
  const connection = await createRedisConnection({ url, commandTimeoutMs, onFault })
  const store = createRedisSessionStore({ connection })
  const admin = new Redis(url)
  return {
    store,
    usedBytes: async () => Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1]),
    serverMicroseconds: async () => {
      const text = await admin.info('commandstats')
      const [, calls, microseconds] = /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m.exec(text) ?? []
      await admin.config('RESETSTAT')
      return Number(microseconds) / Number(calls)
    },
    close: async () => {
      await store.close()
      admin.disconnect()
    },
  }
}
