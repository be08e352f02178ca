import { inspect } from 'node:util'
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { RedisConnectionOptions } from '../../../src/redis/create-redis-connection.ts'
import { type RedisConnection, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { RedisSilentError } from '../../../src/redis/redis-fault.ts'
import { documentedRights } from '../../support/documented-rights.ts'
import { eventually } from '../../support/eventually.ts'
import type { ClusterNode } from '../../support/redis-cluster/cluster-node.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { scriptOf } from './script-of.ts'

const cluster = useTestRedisCluster()

const keepMs = 600_000
/** A key of each primary. */
let keys: readonly string[]
let connection: RedisConnection

/** As many keys as there are primaries, each at another one. */
const findKeys = async (): Promise<readonly string[]> => {
  const found = new Map<number, string>()
  for (let tried = 0; found.size < 3; tried += 1) {
    const key = `key-${tried}`
    const { index } = await cluster().primaryOf(key)
    if (!found.has(index)) found.set(index, key)
  }
  return [...found.values()]
}

beforeEach(async () => {
  await cluster().untilWell()
  keys = await findKeys()
  connection = await cluster().connect()
  for (const key of keys) await connection.set(key, `value of ${key}`, keepMs)
})

const keyAt = (index: number): string => {
  const key = keys[index]
  if (key === undefined) throw new Error('no key')
  return key
}

/** How often a node answered with an error. */
const errorsAt = async (node: ClusterNode, code: string): Promise<number> =>
  Number(new RegExp(`errorstat_${code}:count=(\\d+)`).exec(await node.raw.info('errorstats'))?.[1] ?? 0)

const joinScript = scriptOf('join', `return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}`)

describe('a slot that moves', () => {
  test('is followed: MOVED leads to the new primary', async () => {
    const [key, source] = [keyAt(0), await cluster().primaryOf(keyAt(0))]
    const to = await cluster().primaryOf(keyAt(1))
    const moved = await errorsAt(source, 'MOVED')
    await (await cluster().migrate(await cluster().slotOf(key), to.index)).end()

    expect(await connection.get(key)).toBe(`value of ${key}`)
    expect(await errorsAt(source, 'MOVED')).toBeGreaterThan(moved)
    expect(await cluster().primaryOf(key)).toBe(to)
  })

  test('is followed while it moves: ASK leads to its new place, key by key', async () => {
    const [key, source] = [keyAt(1), await cluster().primaryOf(keyAt(1))]
    const asked = await errorsAt(source, 'ASK')
    const migration = await cluster().migrate(await cluster().slotOf(key), (await cluster().primaryOf(keyAt(2))).index)
    expect(await connection.get(key)).toBe(`value of ${key}`)
    await migration.move()
    // The new place does not know the script either: NOSCRIPT comes after ASK.
    const read = scriptOf('read', `return redis.call('GET', KEYS[1])`)
    expect(await connection.run(read, [key], [])).toBe(`value of ${key}`)
    await connection.set(key, 'written on the way', keepMs)
    await migration.end()

    expect(await connection.get(key)).toBe('written on the way')
    expect(await errorsAt(source, 'ASK')).toBeGreaterThan(asked)
  })

  test('with keys at both ends: TRYAGAIN is tried again, for no longer than a command may take', async () => {
    const [first, second] = [`{${keyAt(2)}}:1`, `{${keyAt(2)}}:2`]
    const [states, hasty] = await connectWatched({ commandTimeoutMs: 1_000 })
    await connection.set(first, 'one', keepMs)
    await connection.set(second, 'two', keepMs)
    const source = await cluster().primaryOf(first)
    const migration = await cluster().migrate(
      await cluster().slotOf(first),
      (await cluster().primaryOf(keyAt(0))).index,
    )
    await migration.move(1)
    const failure = await hasty.run(joinScript, [first, second], []).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(RedisUnavailableError)
    expect(failure).not.toBeInstanceOf(RedisSilentError)
    expect(failure).toHaveProperty('message', 'Redis refused join')
    expect(states).toEqual([])

    const patient = connection.run(joinScript, [first, second], [])
    await eventually(async () => (await errorsAt(source, 'TRYAGAIN')) > 0)
    await migration.end()
    expect(await patient).toEqual(['one', 'two'])
  })

  test('goes to a node that was added, which the connection learns of', async () => {
    const added = await cluster().addNode()
    const slot = await cluster().slotOf(keyAt(0))
    const home = await cluster().primaryOf(keyAt(0))
    await (await cluster().migrate(slot, added.index)).end()
    expect(await connection.get(keyAt(0))).toBe(`value of ${keyAt(0)}`)
    await (await cluster().migrate(slot, home.index)).end()
    expect(await connection.get(keyAt(0))).toBe(`value of ${keyAt(0)}`)
  })
})

/** A connection, and what its circuit breakers and faults told. */
const connectWatched = async (
  options: Partial<RedisConnectionOptions> = {},
): Promise<[states: string[], watched: RedisConnection, recoveries: true[]]> => {
  const [states, recoveries]: [string[], true[]] = [[], []]
  const watched = await cluster().connect({
    keyPrefix: connection.keyPrefix,
    onBreaker: (state, server) => states.push(`${state} ${server}`),
    onRecovered: () => void recoveries.push(true),
    ...options,
  })
  return [states, watched, recoveries]
}

test('messages reach a listener from every node, also after its own has died', async () => {
  const told: string[] = []
  const publish = scriptOf('publish', `return redis.call('PUBLISH', ARGV[1], KEYS[1])`)
  const channel = `${connection.keyPrefix}news`
  connection.subscribe(channel, (message) => told.push(message))
  const untilTold = (key: string) =>
    eventually(async () => {
      told.length = 0
      await connection.run(publish, [key], [channel])
      return eventually(() => told.includes(key), { timeoutMs: 200 })
    })
  for (const key of keys) await untilTold(key)
  for (const { raw } of cluster().nodes) await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub').catch(() => {})
  for (const key of keys) await untilTold(key)
})

describe('a primary that fails', () => {
  test('by kill -9: its commands fail at once, those of others do not, and its replica takes over', async () => {
    const [states, watched, recoveries] = await connectWatched()
    const [lost, well] = [keyAt(0), keyAt(1)]
    const { index } = await cluster().primaryOf(lost)
    await cluster().kill(index)
    await expect(watched.get(lost)).rejects.toBeInstanceOf(RedisUnavailableError)
    expect(await watched.get(well)).toBe(`value of ${well}`)
    expect(recoveries).toEqual([])

    await eventually(() => watched.get(lost))
    expect(await watched.get(lost)).toBe(`value of ${lost}`)
    await eventually(() => watched.get(lost).then(() => recoveries.length > 0))
    // It was away, not silent.
    expect(states).toEqual([])
    await cluster().restart(index)
  })

  test('by freezing: its circuit opens, those of others stay closed, and it closes when the replica has taken over', async () => {
    const [states, watched, recoveries] = await connectWatched({ commandTimeoutMs: 250 })
    const [lost, well] = [keyAt(0), keyAt(1)]
    const { index, port } = await cluster().primaryOf(lost)
    cluster().pause(index)
    const failures = await Promise.all([1, 2, 3, 4, 5].map(() => watched.get(lost).catch((error: unknown) => error)))
    for (const failure of failures) expect(failure).toBeInstanceOf(RedisSilentError)
    expect(states).toEqual([`open 127.0.0.1:${port}`])
    expect(await watched.get(well)).toBe(`value of ${well}`)

    await eventually(() => watched.get(lost))
    expect(states.at(-1)).toBe(`closed 127.0.0.1:${port}`)
    await eventually(() => watched.get(lost).then(() => recoveries.length > 0))
    cluster().resume(index)
  })

  test('cut off from the majority: CLUSTERDOWN, and the connection finds the primary of the others', async () => {
    const [, watched] = await connectWatched({ commandTimeoutMs: 250 })
    const [lost, well] = [keyAt(0), keyAt(1)]
    const { index } = await cluster().primaryOf(lost)
    cluster().cut(index)
    const seen: string[] = []
    await eventually(async () => {
      expect(await watched.get(well)).toBe(`value of ${well}`)
      const failure = await watched.get(lost).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (failure !== undefined) seen.push(inspect(failure))
      return seen.length > 0 && failure === undefined
    })
    expect(seen.join()).toContain('CLUSTERDOWN')
    await eventually(async () => (await cluster().primaryOf(lost)).index !== index)
    cluster().heal(index)
  })
})

test('a user with the rights that docs/redis.md lists works on a cluster', async () => {
  for (const { raw } of cluster().nodes)
    await raw.acl('SETUSER', 'gateway', 'reset', ...documentedRights()).catch(() => {})
  const url = cluster().url.replace('//', '//gateway:password@')
  const refusals: Error[] = []
  const ofGateway = await cluster().connect({
    url,
    keyPrefix: 'ctx:',
    onMessagesRefused: (error) => refusals.push(error),
  })
  const told: string[] = []
  ofGateway.subscribe('ctx:news', (message) => told.push(message))
  const slot = await cluster().slotOf('ctx:key')
  await ofGateway.set('ctx:key', 'value', keepMs)
  const [from, to] = [await cluster().primaryOf('ctx:key'), await cluster().primaryOf(keyAt(0))]
  const target = to === from ? await cluster().primaryOf(keyAt(1)) : to
  const migration = await cluster().migrate(slot, target.index)
  await migration.move()
  expect(await ofGateway.get('ctx:key')).toBe('value')
  await migration.end()
  expect(await ofGateway.get('ctx:key')).toBe('value')
  const publish = scriptOf('publish', `return redis.call('PUBLISH', ARGV[1], 'news')`)
  await eventually(async () => {
    await ofGateway.run(publish, ['ctx:key'], ['ctx:news'])
    return told.length > 0
  })
  await expect(ofGateway.get('other:key')).rejects.toThrow('Redis refused get')
  expect(refusals).toEqual([])
  expect(await logOfRefusals()).toEqual([])
})

/** What a node's log has of the user, other than the key that is not the gateway's. */
const logOfRefusals = async (): Promise<readonly string[]> => {
  const logs = await Promise.all(cluster().nodes.map(({ raw }) => raw.acl('LOG').catch(() => [])))
  return logs
    .flat()
    .map(String)
    .filter((entry) => !entry.includes('other:key'))
}
