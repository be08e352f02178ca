import { types } from 'node:util'
import { Redis } from 'ioredis'
import { createRedisBreaker, type RedisBreakerState } from './redis-breaker.ts'
import { type RedisConnection, RedisUnavailableError } from './redis-connection.ts'
import { isReadOnlyRefusal, toRedisFault, withoutArguments } from './redis-fault.ts'
import { createSubscriptions } from './subscriptions.ts'
import { withinTime } from './time-limit.ts'

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number if needed. One server, no Cluster. */
  readonly url: string
  /** Prepended to every key by the adapters. Default `ctx:`. */
  readonly keyPrefix?: string
  /** How long a command may take before it counts as failed. Default 250. */
  readonly commandTimeoutMs?: number
  /** How long an attempt to connect may take. Default 2000. */
  readonly connectTimeoutMs?: number
  /** Called for every fault of the connection, not of single commands. The error names neither URL nor password. */
  readonly onFault: (error: Error) => void
  /** Called at the first answer after a fault; if Redis refused a command or was late, not before 5 s have passed. */
  readonly onRecovered?: () => void
  /** Called at every change of the circuit breaker, for metrics and logs. */
  readonly onBreaker?: (state: RedisBreakerState) => void
  /** Called whenever Redis answers and does not let the user receive messages. Default: nothing. */
  readonly onMessagesRefused?: (error: Error) => void
}

const firstRetryMs = 50
const maxRetryMs = 1000
/** A connection without an answer for this many command timeouts is closed and made anew: its other end may be gone. */
const silentTimeouts = 10

/** A Redis that refuses some commands and answers others has recovered when it refused none for so long. */
const quietMs = 5_000

const openClient = (
  url: string,
  { connectTimeoutMs, silenceMs }: { readonly connectTimeoutMs: number; readonly silenceMs: number },
): Redis => {
  try {
    return new Redis(url, {
      lazyConnect: true,
      protocol: 2,
      connectTimeout: connectTimeoutMs,
      socketTimeout: silenceMs,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempt) => Math.min(firstRetryMs * 2 ** Math.min(attempt - 1, 10), maxRetryMs),
      reconnectOnError: isReadOnlyRefusal,
      // A Redis that still loads says so to every command, and a restricted user need not be allowed INFO and CLIENT.
      enableReadyCheck: false,
      disableClientInfo: true,
    })
  } catch {
    // The parser's own error carries the URL, and with it the password.
    throw new Error('The Redis URL cannot be read: it looks like redis://user:password@host:6379/0')
  }
}

/**
 * Connects to Redis, and reconnects whenever the connection is lost. Resolves once the first attempt has succeeded or
 * failed. Without a connection, commands reject.
 * @throws Error when the URL cannot be read.
 */
export const createRedisConnection = async ({
  url,
  keyPrefix = 'ctx:',
  commandTimeoutMs = 250,
  connectTimeoutMs = 2000,
  onFault,
  onRecovered,
  onBreaker,
  onMessagesRefused = () => {},
}: RedisConnectionOptions): Promise<RedisConnection> => {
  const client = openClient(url, { connectTimeoutMs, silenceMs: commandTimeoutMs * silentTimeouts })
  let isFaulty = false
  let lostBy: Error | undefined
  let failedMs = Number.NEGATIVE_INFINITY
  client.on('error', (error: Error) => {
    isFaulty = true
    lostBy = withoutArguments(error)
    onFault(lostBy)
  })
  const breaker = createRedisBreaker({ onState: onBreaker })
  const subscriptions = createSubscriptions({ client, onRefused: onMessagesRefused })

  const evaluate: RedisConnection['run'] = async (script, keys, args) => {
    try {
      return await client.evalsha(script.digest, keys.length, ...keys, ...args)
    } catch (error) {
      if (!types.isNativeError(error) || !error.message.startsWith('NOSCRIPT')) throw error
      return await client.eval(script.source, keys.length, ...keys, ...args)
    }
  }

  /** Commands of one event loop iteration leave in one write. With a write for each, a 2 KB turn costs a tenth more. */
  const holdWrites = (): void => {
    const { stream, status } = client
    if (status !== 'ready' || stream.writableCorked > 0) return
    stream.cork()
    setImmediate(() => stream.uncork())
  }

  const guarded = <T>(action: string, command: () => Promise<T>): Promise<T> =>
    breaker.run(async () => {
      try {
        holdWrites()
        const answer = await withinTime(command(), commandTimeoutMs)
        if (isFaulty && performance.now() - failedMs >= quietMs) {
          onRecovered?.()
          isFaulty = false
        }
        return answer
      } catch (error) {
        const isConnected = client.status === 'ready'
        // What a command without a connection says of itself tells nobody why there is none.
        const fault = toRedisFault(isConnected ? error : (lostBy ?? error), action)
        if (fault instanceof RedisUnavailableError) isFaulty = true
        if (isConnected) failedMs = performance.now()
        throw fault
      }
    })

  // A failure is reported through the client's 'error' event; it goes on trying by itself.
  await client.connect().catch(() => {})

  return {
    keyPrefix,
    run: (script, keys, args) => guarded(script.name, () => evaluate(script, keys, args)),
    async get(key) {
      return (await guarded('get', () => client.get(key))) ?? undefined
    },
    async set(key, text, ttlMs) {
      await guarded('set', () => client.set(key, text, 'PX', ttlMs))
    },
    subscribe: (channel, onMessage) => subscriptions.subscribe(channel, onMessage),
    async close() {
      subscriptions.close()
      client.disconnect()
    },
  }
}
