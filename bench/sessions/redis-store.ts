import { Redis } from 'ioredis'
import { findRedis } from '../../playground/install/find-redis.ts'
import { requireTool } from '../../playground/install/find-tool.ts'
import { toolsDir } from '../../playground/paths.ts'
import { startRedis } from '../../playground/start-redis.ts'
import { createRedisConnection } from '../../src/redis/create-redis-connection.ts'
import { createRedisSessionStore } from '../../src/sessions/redis/create-redis-session-store.ts'
import type { Children } from '../gateway/children.ts'
import type { StoreUnderBench } from './store-under-bench.ts'

/** Not the gateway's own limit: here a slow answer is to be measured, not to be given up. */
const commandTimeoutMs = 30_000

/** A Redis of its own with the session store on it. */
export const startRedisStore = async (options: {
  readonly children: Children
  readonly directory: string
}): Promise<StoreUnderBench & { readonly version: string }> => {
  const tool = requireTool(await findRedis({ env: process.env, toolsDir: toolsDir() }))
  const redis = await startRedis({ tool, dir: options.directory })
  options.children.add(redis.child)
  const faults: Error[] = []
  const connection = await createRedisConnection({
    url: redis.url,
    commandTimeoutMs,
    onFault: (error) => void faults.push(error),
  })
  const store = createRedisSessionStore({ connection })
  const admin = new Redis(redis.url)
  const numberOf = async (section: string, pattern: RegExp): Promise<number> =>
    Number(pattern.exec(await admin.info(section))?.[1])
  return {
    store,
    version: tool.version,
    usedBytes: () => numberOf('memory', /^used_memory:(\d+)/m),
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
