import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findRedis } from '../../playground/install/find-redis.ts'
import type { ServerTool } from '../../playground/install/find-tool.ts'
import { toolsDir } from '../../playground/paths.ts'
import { type RunningRedis, type StartRedisOptions, startRedis } from '../../playground/start-redis.ts'
import { createRedisConnection, type RedisConnectionOptions } from '../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../src/redis/redis-connection.ts'

/** A Redis server for one test file, and a plain client to read and damage its keys. */
export interface TestRedis {
  readonly server: RunningRedis
  readonly tool: ServerTool
  readonly dir: string
  readonly raw: Redis
  /** A connection with a key prefix of its own, closed with the server. */
  connect(options?: Partial<RedisConnectionOptions>): Promise<RedisConnection>
  close(): Promise<void>
}

export const startTestRedis = async (options: Omit<StartRedisOptions, 'tool' | 'dir'> = {}): Promise<TestRedis> => {
  const tool = await findRedis({ env: process.env, toolsDir: toolsDir() })
  const dir = await mkdtemp(join(tmpdir(), 'test-redis-'))
  const server = await startRedis({ ...options, tool, dir })
  const raw = new Redis(server.url, { protocol: 2 })
  // Tests stop their server on purpose.
  raw.on('error', () => {})
  const connections: RedisConnection[] = []
  return {
    server,
    tool,
    dir,
    raw,
    async connect(changes = {}) {
      const connection = await createRedisConnection({
        url: server.url,
        keyPrefix: `test:${randomUUID()}:`,
        onFault: () => {},
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
