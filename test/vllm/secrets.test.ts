import { describe, expect, jest, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { vllmPod } from './support/fleet.ts'
import { tokenize } from './support/pod.ts'
import { freshPrompt } from './support/prompts.ts'
import { sessionClient } from './support/session.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

const stack = useVllmStack({ store: 'redis' })

/** Every key and value, byte for byte. */
const dumpRedis = async (): Promise<Buffer> => {
  const redis = new Redis(stack().redis?.url ?? '')
  try {
    const keys = await redis.keys('*')
    const values = await Promise.all(
      keys.map(async (key) => {
        switch (await redis.type(key)) {
          case 'string':
            return [(await redis.getBuffer(key)) ?? Buffer.alloc(0)]
          case 'hash':
            return Object.entries(await redis.hgetallBuffer(key)).flatMap(([field, value]) => [
              Buffer.from(field),
              value,
            ])
          case 'set':
            return redis.smembersBuffer(key)
          case 'zset':
            return redis.zrangeBuffer(key, '0', '-1')
          default:
            return redis.lrangeBuffer(key, 0, -1)
        }
      }),
    )
    return Buffer.concat([...keys.map((key) => Buffer.from(`${key}\n`)), ...values.flat()])
  } finally {
    redis.disconnect()
  }
}

/** The ways in which a few of the prompt's token ids could stand somewhere. */
const traces = (tokens: readonly number[]): readonly Buffer[] => {
  const some = tokens.slice(10, 14)
  const littleEndian = Buffer.alloc(some.length * 4)
  const bigEndian = Buffer.alloc(some.length * 4)
  some.forEach((token, index) => {
    littleEndian.writeUInt32LE(token, index * 4)
    bigEndian.writeUInt32BE(token, index * 4)
  })
  return [littleEndian, bigEndian, Buffer.from(some.join(',')), Buffer.from(some.join(', '))]
}

describe('a dump of Redis', () => {
  test('shows neither prompt, token ids nor session id, but holds the names of chunks', async () => {
    const client = sessionClient(stack())
    const prompt = freshPrompt(450)
    const { id } = await client.create(prompt)
    await client.settled(id, 1)
    const tokens = await tokenize(vllmPod(0), prompt)

    const dump = await dumpRedis()

    expect(dump.length).toBeGreaterThan(500)
    expect(dump.includes('kv:chunks:')).toBe(true)
    expect(dump.includes(id)).toBe(false)
    expect(dump.includes(prompt.slice(20, 60))).toBe(false)
    expect(traces(tokens).map((trace) => dump.includes(trace))).toEqual([false, false, false, false])
    await client.remove(id)
  })
})
