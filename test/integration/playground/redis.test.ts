import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { type RunningRedis, type StartRedisOptions, startRedis } from '../../../playground/start-redis.ts'
import { eventually } from '../../support/eventually.ts'

let dir = ''
const running: RunningRedis[] = []
const clients: Redis[] = []

const start = async (options: Partial<StartRedisOptions> = {}): Promise<RunningRedis> => {
  const redis = await startRedis({ dir, ...options })
  running.push(redis)
  return redis
}
const connect = (url: string): Redis => {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
  client.on('error', () => undefined)
  clients.push(client)
  return client
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'launcher-redis-'))
})
afterEach(async () => {
  for (const client of clients.splice(0)) {
    if (client.status !== 'end') client.disconnect()
    await eventually(() => client.status === 'end')
  }
  await Promise.all(running.splice(0).map((redis) => redis.child.kill()))
})
afterAll(() => rm(dir, { recursive: true, force: true }))

describe('startRedis', () => {
  test('refuses writes beyond its memory', async () => {
    const redis = await start({ maxmemoryBytes: 1_500_000 })
    const client = connect(redis.url)
    const fill = async (): Promise<void> => {
      for (let index = 0; index < 10; index += 1) await client.set(`key${index}`, 'x'.repeat(1_000_000))
    }
    await expect(fill()).rejects.toThrow('OOM')
  })

  test.each([
    { persistence: 'append-only' as const, found: 'value' },
    { persistence: 'none' as const, found: null },
  ])('after kill -9 with persistence $persistence a restart finds $found', async ({ persistence, found }) => {
    const folder = join(dir, persistence)
    const first = await start({ persistence, dir: folder })
    await connect(first.url).set('key', 'value')
    expect((await first.child.kill()).signal).toBe('SIGKILL')
    const second = await start({ persistence, dir: folder, port: first.port })
    expect(await connect(second.url).get('key')).toBe(found)
  })

  test('a port in use fails with the output of Redis, and leaves no process', async () => {
    const first = await start()
    await expect(startRedis({ dir, port: first.port })).rejects.toThrow(
      /redis ended with exit code 1 .*Address already in use/s,
    )
  })
})
