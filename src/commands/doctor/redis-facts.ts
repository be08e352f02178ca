import { hash } from 'node:crypto'
import type { RedisLocation } from '../../options/redis-location.ts'
import { urlsOfHosts } from '../../options/redis-url.ts'
import { createRedisConnection } from '../../redis/create-redis-connection.ts'
import type { RedisScript } from '../../redis/redis-connection.ts'
import { sentenceOf } from '../../telemetry/sentence-of.ts'
import type { ClockReading } from './clock-reading.ts'
import { type Known, known, type Seen, unknown } from './known.ts'

/** What a Redis says of its memory. */
export interface RedisFacts {
  readonly maxmemoryPolicy: string
  /** 0: no limit. */
  readonly maxmemoryBytes: number
}

const script = (name: string, source: string): RedisScript => ({ name, source, digest: hash('sha1', source) })
// As a script, since the gateway's connection runs scripts alone. CONFIG cannot be called by one; INFO tells the same.
const askMemory = script('doctor-memory', `return redis.call('INFO', 'memory')`)
const askTime = script('doctor-time', `return redis.call('TIME')`)
const timeoutMs = 5_000

/**
 * Asks a Redis for its memory policy and its clock; of a cluster, each node that the location lists, and reports the
 * first one that may drop keys. No credentials are in what it says.
 */
export const askRedis = async (location: RedisLocation): Promise<Seen<RedisFacts>> => {
  if (location.topology?.kind !== 'cluster') return askServer(location, 'Redis')
  const answers = await Promise.all(
    urlsOfHosts(location.url).map((url) => askServer({ url, tls: location.tls }, `Redis ${new URL(url).host}`)),
  )
  const seen = answers.map(({ facts }) => facts)
  const found = seen.filter((facts) => facts.kind === 'known')
  const facts = found.find(({ value }) => value.maxmemoryPolicy !== 'noeviction') ?? found[0] ?? seen[0]
  return { facts: facts ?? unknown('no node is given'), clocks: answers.flatMap(({ clocks }) => clocks) }
}

const askServer = async (location: RedisLocation, name: string): Promise<Seen<RedisFacts>> => {
  const connection = await createRedisConnection({ ...location, commandTimeoutMs: timeoutMs, onFault: () => undefined })
  try {
    const askedMs = Date.now()
    const time = await connection.run(askTime, [], [])
    const clocks = redisClock(name, time, { askedMs, answeredMs: Date.now() })
    const facts = await connection.run(askMemory, [], []).then(
      (info) => readMemory(String(info)),
      () =>
        unknown(
          'the user of the gateway may not run INFO: CONFIG GET maxmemory-policy as an administrator should say noeviction',
        ),
    )
    return { facts, clocks }
  } catch (error) {
    return { facts: unknown(`Redis cannot be asked: ${sentenceOf(error)}`), clocks: [] }
  } finally {
    await connection.close()
  }
}

const readMemory = (info: string): Known<RedisFacts> => {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const policy = field('maxmemory_policy')
  if (policy === undefined) return unknown('INFO memory of this Redis names no maxmemory_policy')
  return known({ maxmemoryPolicy: policy, maxmemoryBytes: Number(field('maxmemory') ?? 0) })
}

const redisClock = (
  name: string,
  time: unknown,
  { askedMs, answeredMs }: { readonly askedMs: number; readonly answeredMs: number },
): readonly ClockReading[] => {
  if (!Array.isArray(time)) return []
  const atMs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000
  return [{ of: name, leastAheadMs: atMs - answeredMs, mostAheadMs: atMs - askedMs }]
}
