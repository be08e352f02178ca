import { createHash } from 'node:crypto'
import { types } from 'node:util'
import { Command, Redis } from 'ioredis'
import { createAnswerWatch } from './answer-watch.ts'
import { createWriteJoiner } from './join-writes.ts'
import { limitHandshakes } from './limit-handshakes.ts'
import { readAtOnce } from './read-at-once.ts'
import { createRedisBreaker, type RedisBreakerState } from './redis-breaker.ts'
import type { RedisConnection, RedisScript } from './redis-connection.ts'
import { isReadOnlyRefusal, toRedisFault, withoutArguments } from './redis-fault.ts'

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number where needed. One server; Redis Cluster is not supported. */
  readonly url: string
  /** Prepended to every key by the adapters. Default `ctx:`. */
  readonly keyPrefix?: string
  /** How long a command may take before it counts as failed. Default 250. */
  readonly commandTimeoutMs?: number
  /** How long an attempt to connect may take. Default 2000. */
  readonly connectTimeoutMs?: number
  /** Told of every fault of the connection itself (not of single commands). The error names neither URL nor password. */
  readonly onFault: (error: Error) => void
  /** Told of every change of the circuit breaker, for metrics and logs. */
  readonly onBreaker?: (state: RedisBreakerState) => void
}

const firstRetryMs = 50
const maxRetryMs = 1000
/** A connection without an answer for this many command timeouts is given up and made anew: its other end may not be there any more. */
const silentTimeouts = 10

const textReplies = { replyEncoding: 'utf8' } as const

const openClient = (url: string, connectTimeoutMs: number): Redis => {
  try {
    return new Redis(url, {
      lazyConnect: true,
      protocol: 2,
      connectTimeout: connectTimeoutMs,
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

const connectOnce = async (client: Redis): Promise<void> => {
  try {
    await client.connect()
  } catch {
    // Reported through the client's 'error' event; it goes on trying by itself.
  }
}

const joined = (script: string, keys: readonly string[], args: readonly (string | number)[]): string[] => {
  const all = [script, String(keys.length)]
  for (const key of keys) all.push(key)
  for (const argument of args) all.push(String(argument))
  return all
}

/**
 * Connects to Redis and keeps connecting for ever. Resolves once the first attempt has succeeded or failed, and does not reject for a Redis
 * that is away: its commands do until it is there.
 *
 * @throws Error when the URL cannot be read.
 */
export const createRedisConnection = async ({
  url,
  keyPrefix = 'ctx:',
  commandTimeoutMs = 250,
  connectTimeoutMs = 2000,
  onFault,
  onBreaker,
}: RedisConnectionOptions): Promise<RedisConnection> => {
  const client = openClient(url, connectTimeoutMs)
  client.on('error', (error: Error) => onFault(withoutArguments(error)))
  const silenceMs = commandTimeoutMs * silentTimeouts
  const giveUpConnection = (): void => {
    // The client hears of it as of any other fault of its connection, and connects anew.
    client.stream.destroy(new Error(`Socket timeout: no answer in ${silenceMs} ms`))
  }
  const inTime = createAnswerWatch({ limitMs: commandTimeoutMs, silenceMs, onSilence: giveUpConnection })
  limitHandshakes(client, silenceMs, giveUpConnection)
  client.on('connect', () => readAtOnce(client.stream))
  const breaker = createRedisBreaker({ onState: onBreaker })
  const digests = new Map<RedisScript, string>()

  const joinWrites = createWriteJoiner()

  const digestOf = (script: RedisScript): string => {
    const known = digests.get(script)
    if (known !== undefined) return known
    const digest = createHash('sha1').update(script.source).digest('hex')
    digests.set(script, digest)
    return digest
  }

  /** The client's own `evalsha` looks at its arguments three times, and every turn makes two of these calls. */
  const call = (name: 'evalsha' | 'eval', args: string[]): Promise<unknown> => {
    if (client.status === 'ready') joinWrites(client.stream)
    const command = new Command(name, [], textReplies)
    // Given to the constructor they would be flattened, each by a call into V8's runtime, and made strings, which they are.
    command.args = args
    void client.sendCommand(command)
    return command.promise
  }

  const evaluate: RedisConnection['run'] = (script, keys, args) =>
    call('evalsha', joined(digestOf(script), keys, args)).catch((error: unknown) => {
      if (!types.isNativeError(error) || !error.message.startsWith('NOSCRIPT')) throw error
      return call('eval', joined(script.source, keys, args))
    })

  const guarded = <T>(action: string, command: () => Promise<T>): Promise<T> =>
    breaker.run(() => inTime(command(), (error) => toRedisFault(error, action)))

  await connectOnce(client)

  return {
    keyPrefix,
    run: (script, keys, args) => guarded(script.name, () => evaluate(script, keys, args)),
    async getBytes(key) {
      return (await guarded('get', () => client.getBuffer(key))) ?? undefined
    },
    async setBytes(key, value, ttlMs) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      await guarded('set', () => client.set(key, bytes, 'PX', ttlMs))
    },
    async unlink(keys) {
      if (keys.length > 0) await guarded('unlink', () => client.unlink([...keys]))
    },
    async ping() {
      await guarded('ping', () => client.ping())
    },
    async close() {
      client.disconnect()
    },
  }
}
