import type { RedisOptions } from 'ioredis'
import type { RedisClientLimits } from './redis-servers.ts'

const firstRetryMs = 50
const maxRetryMs = 1000
/** A connection without an answer for this many command timeouts is closed and made anew: its other end may be gone. */
const silentTimeouts = 10

/** Pause before an attempt to connect again, from the first one. */
export const retryDelayMs = (attempt: number): number =>
  Math.min(firstRetryMs * 2 ** Math.min(attempt - 1, 10), maxRetryMs)

/** What every connection has in common. */
export const clientOptions = ({ commandTimeoutMs, connectTimeoutMs }: RedisClientLimits) =>
  ({
    lazyConnect: true,
    protocol: 2,
    connectTimeout: connectTimeoutMs,
    socketTimeout: commandTimeoutMs * silentTimeouts,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // A Redis that still loads says so to every command, and a restricted user need not be allowed INFO and CLIENT.
    enableReadyCheck: false,
    disableClientInfo: true,
  }) satisfies RedisOptions
