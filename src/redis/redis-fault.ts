import { types } from 'node:util'
import { RedisScriptError, RedisUnavailableError } from './redis-connection.ts'

/**
 * Error codes with which a Redis that answers says that it cannot serve now: it lost its master or its replicas, is full, starting, busy,
 * cannot save, or does not let this user in. An error raised inside a script carries its code in the middle of the text on Redis 6, and for
 * a missing permission it has words instead of a code.
 */
const refusals =
  /\b(READONLY|OOM|LOADING|NOPERM|NOAUTH|WRONGPASS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|UNKILLABLE|MISCONF|NOREPLICAS)\b|The user executing the script can't|ACL failure in script/

/** Redis gave no answer in time. The only fault that costs the caller time, so the only one that opens the circuit breaker. */
export class RedisSilentError extends RedisUnavailableError {}

/** Whether Redis refused to write because this node is a replica: the master is elsewhere, so connecting anew may find it. */
export const isReadOnlyRefusal = (error: Error): boolean => /\bREADONLY\b/.test(error.message)

/**
 * An error of the Redis client without what it must not tell: ioredis hangs the command with all its arguments on it, and Redis quotes
 * arguments of commands it does not know.
 */
export const withoutArguments = (error: unknown): Error => {
  if (!types.isNativeError(error)) return new Error('Unknown fault of the Redis client')
  const plain = new Error(error.message.replace(/,? with args beginning with.*/s, ''))
  plain.name = error.name
  return 'code' in error && typeof error.code === 'string' ? Object.assign(plain, { code: error.code }) : plain
}

/** What a failed command means to the caller. */
export const toRedisFault = (error: unknown, action: string): RedisUnavailableError | RedisScriptError => {
  if (error instanceof RedisSilentError) return error
  const cause = withoutArguments(error)
  if (cause.name !== 'ReplyError') return new RedisUnavailableError(`Redis cannot be reached for ${action}`, { cause })
  if (refusals.test(cause.message)) return new RedisUnavailableError(`Redis refused ${action}`, { cause })
  return new RedisScriptError(`Redis failed at ${action}`, { cause })
}
