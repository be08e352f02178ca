import { types } from 'node:util'
import type { Redis } from 'ioredis'
import type { RedisLocation } from '../options/redis-location.ts'
import { openClusterServers } from './cluster-servers.ts'
import { openOneServer } from './one-server.ts'
import type { RedisBreakerState } from './redis-breaker.ts'
import { type RedisConnection, RedisUnavailableError } from './redis-connection.ts'
import type { RedisClientLimits, RedisServers, RedisServersEvents } from './redis-servers.ts'
import { createServerHealth, type ServerHealth } from './server-health.ts'
import { createSubscriptions } from './subscriptions.ts'

/** How long an attempt to connect may take. */
const connectTimeoutMs = 2000

export interface RedisConnectionOptions extends RedisLocation {
  /** Prepended to every key by the adapters. Default `ctx:`. */
  readonly keyPrefix?: string
  /** How long a command may take before it counts as failed. Default 250. */
  readonly commandTimeoutMs?: number
  /** Called for every fault of the connection, not of single commands. The error names neither URL nor password. */
  readonly onFault: (error: Error) => void
  /**
   * Called when no server is at fault any longer: at the first answer after a fault; if Redis refused a command or was
   * late, not before 5 s have passed; and when others have taken over the keys of a server at fault.
   */
  readonly onRecovered?: () => void
  /**
   * Called at every change of the circuit breaker of a server, for metrics and logs: with its address, but `closed` only
   * when those of all servers are.
   */
  readonly onBreaker?: (state: RedisBreakerState, server: string) => void
  /** Called whenever Redis answers and does not let the user receive messages. Default: nothing. */
  readonly onMessagesRefused?: (error: Error) => void
}

const openServers = (location: RedisLocation, limits: RedisClientLimits, events: RedisServersEvents): RedisServers => {
  const { topology = { kind: 'server' } } = location
  try {
    return topology.kind === 'cluster'
      ? openClusterServers(location, limits, events)
      : openOneServer({ ...location, topology }, limits, events)
  } catch (error) {
    if (types.isNativeError(error) && 'syscall' in error) throw error
    // The parser's own error carries the URL, and with it the password.
    throw new Error('The Redis URL cannot be read: it looks like redis://user:password@host:6379/0')
  }
}

/**
 * Connects to Redis, and reconnects whenever the connection is lost. Resolves once the first attempt has succeeded or
 * failed. Without a connection, commands reject. In a cluster each primary has a connection and a circuit breaker of its
 * own: what one of them fails at does not touch the keys of the others.
 * @throws Error when the URL, or a file for TLS, cannot be read.
 */
export const createRedisConnection = async ({
  keyPrefix = 'ctx:',
  commandTimeoutMs = 250,
  onFault,
  onRecovered = () => {},
  onBreaker = () => {},
  onMessagesRefused = () => {},
  ...location
}: RedisConnectionOptions): Promise<RedisConnection> => {
  const healths = new Map<string, ServerHealth>()
  const some = (is: (health: ServerHealth) => boolean): boolean => [...healths.values()].some(is)
  const recovered = (): void => {
    if (!some((health) => health.isFaulty())) onRecovered()
  }
  const breakerChanged = (state: RedisBreakerState, server: string): void => {
    if (state !== 'closed' || !some((health) => health.breaker() !== 'closed')) onBreaker(state, server)
  }
  const healthOf = (server: string): ServerHealth => {
    const known = healths.get(server)
    if (known !== undefined) return known
    const onState = (state: RedisBreakerState): void => breakerChanged(state, server)
    const health = createServerHealth({ commandTimeoutMs, onRecovered: recovered, onBreaker: onState })
    healths.set(server, health)
    return health
  }
  const forgetOthers = (): void => {
    for (const [server, health] of healths) {
      if (servers.isInUse(server)) continue
      healths.delete(server)
      if (health.breaker() !== 'closed') breakerChanged('closed', server)
      if (health.isFaulty()) recovered()
    }
  }

  const limits = { commandTimeoutMs, connectTimeoutMs }
  const servers = openServers(location, limits, {
    onLost: (server, error) => {
      healthOf(server).lost(error)
      onFault(error)
    },
    onChange: forgetOthers,
  })
  const { commands } = servers
  const subscriptions = createSubscriptions({ open: () => servers.openSubscriber(), onRefused: onMessagesRefused })

  const evaluate: RedisConnection['run'] = async (script, keys, args) => {
    try {
      return await commands.evalsha(script.digest, keys.length, ...keys, ...args)
    } catch (error) {
      if (!types.isNativeError(error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await commands.eval(script.source, keys.length, ...keys, ...args)
    }
  }

  const guarded = async <T>(key: string, action: string, command: () => Promise<T>): Promise<T> => {
    const { name, connection } = servers.serverOf(key)
    try {
      return await healthOf(name).run(
        action,
        () => {
          if (connection !== undefined) holdWrites(connection)
          return command()
        },
        () => connection?.status === 'ready',
      )
    } catch (error) {
      if (error instanceof RedisUnavailableError) servers.suspect()
      throw error
    }
  }

  await servers.connect()

  return {
    keyPrefix,
    run: (script, keys, args) => guarded(keys[0] ?? '', script.name, () => evaluate(script, keys, args)),
    async get(key) {
      return (await guarded(key, 'get', () => commands.get(key))) ?? undefined
    },
    async set(key, text, ttlMs) {
      await guarded(key, 'set', () => commands.set(key, text, 'PX', ttlMs))
    },
    subscribe: (channel, onMessage) => subscriptions.subscribe(channel, onMessage),
    async close() {
      subscriptions.close()
      servers.disconnect()
    },
  }
}

/** Commands of one event loop iteration leave in one write. With a write for each, a 2 KB turn costs a tenth more. */
const holdWrites = ({ stream, status }: Redis): void => {
  if (status !== 'ready' || stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}
