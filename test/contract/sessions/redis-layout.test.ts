import { describe, expect, test } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { StoreLayoutError } from '../../../src/sessions/redis/partitions.ts'
import { eventually } from '../../support/eventually.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { newSession, owned, session } from './store-under-test.ts'

describe('the partitions of a Redis session store', () => {
  const redis = useTestRedis()
  const open = async (options: { readonly partitions?: number; readonly partitionsOfNewStore?: number } = {}) => {
    const connection = await redis().connect({ keyPrefix: 'layout:' })
    return createRedisSessionStore({ connection, ...options })
  }

  test('their number is fixed by the first gateway, and other gateways follow it', async () => {
    await redis().raw.flushdb()
    const first = await open({ partitionsOfNewStore: 8 })
    await first.create(newSession())
    const second = await open({ partitionsOfNewStore: 1 })

    expect(await second.get(owned)).toMatchObject({ key: session })
  })

  test('a gateway that is told another number is refused, with the number to set', async () => {
    await redis().raw.flushdb()
    await (await open({ partitions: 8 })).identity()
    const other = await open({ partitions: 16 })

    await expect(other.get(owned)).rejects.toThrow('Set sessions.partitions to 8')
    await expect(other.identity()).rejects.toBeInstanceOf(StoreLayoutError)
  })

  test('a store that lost its data keeps the number that its gateways work with', async () => {
    await redis().raw.flushdb()
    const first = await open({ partitionsOfNewStore: 8 })
    await first.identity()
    await redis().raw.flushdb()
    await first.identity()

    expect(await redis().raw.hget('layout:store', 'partitions')).toBe('8')
  })

  test('sessions of the layout before partitions are refused, with the command that empties it', async () => {
    await redis().raw.flushdb()
    await redis().raw.set('layout:store', 'its name')

    await expect((await open()).create(newSession())).rejects.toThrow("redis-cli --scan --pattern 'layout:*'")
  })

  test('one gateway at a time works on a partition, and then another one', async () => {
    await redis().raw.flushdb()
    const [first, second] = [await open(), await open()]
    await first.announce({ artefactId: `${session.slice(0, 22)}a`, session, payload: '', graceMs: 0 })
    expect(await first.claim({ limit: 10, leaseMs: 1 })).toHaveLength(1)
    expect(await second.claim({ limit: 10, leaseMs: 60_000 })).toHaveLength(0)

    for (const worker of await redis().raw.keys('layout:*:w')) {
      expect(await redis().raw.pttl(worker)).toBeGreaterThan(0)
      await redis().raw.pexpire(worker, 1)
    }
    await eventually(async () => (await second.claim({ limit: 10, leaseMs: 60_000 })).length === 1)
  })
})
