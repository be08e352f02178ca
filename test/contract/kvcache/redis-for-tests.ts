import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findRedis } from '../../../playground/install/find-redis.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startRedis } from '../../../playground/start-redis.ts'
import { createRedisConnection } from '../../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'

/** A real Redis of its own for one test file. */
export interface RedisForTests {
  /** A connection with a key prefix of its own, so that tests do not see each other's keys. It is closed at the end. */
  connect(): Promise<RedisConnection>
  end(): Promise<void>
}

export const startRedisForTests = async (): Promise<RedisForTests> => {
  const tool = await findRedis({ env: process.env, toolsDir: toolsDir(), report: console.log })
  const dir = await mkdtemp(join(tmpdir(), 'slots-redis-'))
  const redis = await startRedis({ tool, dir })
  const connections: RedisConnection[] = []
  return {
    connect: async () => {
      const connection = await createRedisConnection({
        url: redis.url,
        keyPrefix: `test${connections.length}:`,
        commandTimeoutMs: 2_000,
        onFault: (error) => console.error(error),
      })
      connections.push(connection)
      return connection
    },
    end: async () => {
      await Promise.all(connections.map((connection) => connection.close()))
      await redis.child.kill()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
