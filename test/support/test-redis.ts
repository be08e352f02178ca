import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type RunningRedis, type StartRedisOptions, startRedis } from '../../playground/start-redis.ts'
import { createRedisConnection, type RedisConnectionOptions } from '../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../src/redis/redis-connection.ts'

/** A Redis server for one test file, and a plain client to read and damage its keys. */
export interface TestRedis {
  readonly server: RunningRedis
  readonly dir: string
  readonly raw: Redis
  /** A connection with a key prefix of its own, closed with the server. */
  connect(options?: Partial<RedisConnectionOptions>): Promise<RedisConnection>
  close(): Promise<void>
}

export const startTestRedis = async (options: Omit<StartRedisOptions, 'tool' | 'dir'> = {}): Promise<TestRedis> => {
  const dir = await mkdtemp(join(tmpdir(), 'test-redis-'))
  const server = await startRedis({ ...options, dir })
  const raw = new Redis(server.url, { protocol: 2 })
  // Tests stop their server on purpose.
  raw.on('error', () => {})
  const connections: RedisConnection[] = []
  return {
    server,
    dir,
    raw,
    async connect(changes = {}) {
      const connection = await createRedisConnection({
        url: server.url,
        keyPrefix: `test:${randomUUID()}:`,
        onFault: () => {},
        // Not the default: on a busy machine an answer takes longer than 250 ms.
        commandTimeoutMs: 10_000,
        ...changes,
      })
      connections.push(connection)
      return connection
    },
    async close() {
      raw.disconnect()
      await Promise.all(connections.map((connection) => connection.close()))
      await server.child.kill()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
