import { types } from 'node:util'
import { RedisScriptError, RedisUnavailableError } from './redis-connection.ts'

/**
 * Error codes with which a Redis that answers says that it cannot serve now: it lost its master or its replicas, is
 * full, starting, busy, cannot save, or does not let this user in. On Redis 6, an error raised inside a script has its
 * code in the middle of the text, and for a missing permission words instead of a code.
 */
const refusals =
  /\b(READONLY|OOM|LOADING|NOPERM|NOAUTH|WRONGPASS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|UNKILLABLE|MISCONF|NOREPLICAS)\b|The user executing the script can't|ACL failure in script/

/** Of ioredis, when a cluster redirected or put off a command at every try. The last answer may be a MOVED that says nothing. */
const isPutOff = (error: Error): boolean => error.message.startsWith('Too many Cluster redirections')

/** Redis gave no answer in time. Only this fault costs the caller time, so only this one opens the circuit breaker. */
export class RedisSilentError extends RedisUnavailableError {}

/** Whether Redis refused to write as a replica: the master is elsewhere, so connecting anew may find it. */
export const isReadOnlyRefusal = (error: Error): boolean => /\bREADONLY\b/.test(error.message)

/** An error without the arguments of its command: ioredis attaches them, and Redis quotes those of unknown commands. */
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
  const isAnswer = cause.name === 'ReplyError' || isPutOff(cause)
  if (!isAnswer) return new RedisUnavailableError(`Redis cannot be reached for ${action}`, { cause })
  if (isPutOff(cause) || refusals.test(cause.message))
    return new RedisUnavailableError(`Redis refused ${action}`, { cause })
  return new RedisScriptError(`Redis failed at ${action}`, { cause })
}
