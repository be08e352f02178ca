/** A Lua script that Redis runs in one atomic step. */
export interface RedisScript {
  /** File name without its ending, for errors and metrics. */
  readonly name: string
  readonly source: string
  /** SHA-1 of the source (hex), by which Redis knows the script. */
  readonly digest: string
}

/**
 * A connection that answers within its time limit or not at all: nothing queues behind a Redis that is gone.
 * @throws RedisUnavailableError from every method but `close`.
 * @throws RedisScriptError when Redis ran a script or command and it failed: a key has another type, for example.
 */
export interface RedisConnection {
  /** Prepended to every key by the adapters, `ctx:` by default. */
  readonly keyPrefix: string
  /** Runs a script: `EVALSHA`, and `EVAL` where Redis does not know it yet. */
  run(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>
  /** The text of a string key; undefined when there is none. */
  get(key: string): Promise<string | undefined>
  /** Writes a string key that Redis forgets after `ttlMs`, a whole number from 1. */
  set(key: string, text: string, ttlMs: number): Promise<void>
  /** Calls back for each message of a channel, which has one listener. Messages may be lost. Never throws. */
  subscribe(channel: string, onMessage: (message: string) => void): void
  close(): Promise<void>
}

/** Redis is down, too slow, read-only, full or behind an open circuit breaker. */
export class RedisUnavailableError extends Error {
  override readonly name = 'RedisUnavailableError'
}

/** Redis answers, and the script is at fault: waiting does not mend it, and no mistake passes for an outage. */
export class RedisScriptError extends Error {
  override readonly name = 'RedisScriptError'
}
