import { createRedisBreaker, type RedisBreakerState } from './redis-breaker.ts'
import { RedisUnavailableError } from './redis-connection.ts'
import { toRedisFault } from './redis-fault.ts'
import { withinTime } from './time-limit.ts'

/** A Redis that refuses some commands and answers others has recovered when it refused none for so long. */
const quietMs = 5_000

/** How one server fares. */
export interface ServerHealth {
  /**
   * Runs a command within the time limit. `isConnected` is asked when it failed.
   * @throws RedisUnavailableError, RedisScriptError
   */
  run<T>(action: string, command: () => Promise<T>, isConnected: () => boolean): Promise<T>
  /** Its connection failed, or could not be made. */
  lost(error: Error): void
  /** Whether it failed, and has not recovered. */
  isFaulty(): boolean
  breaker(): RedisBreakerState
}

export const createServerHealth = (options: {
  readonly commandTimeoutMs: number
  readonly onRecovered: () => void
  readonly onBreaker: (state: RedisBreakerState) => void
}): ServerHealth => {
  let isFaulty = false
  let lostBy: Error | undefined
  let failedMs = Number.NEGATIVE_INFINITY
  let state: RedisBreakerState = 'closed'
  const breaker = createRedisBreaker({
    onState: (next) => {
      state = next
      options.onBreaker(next)
    },
  })
  return {
    run: (action, command, isConnected) =>
      breaker.run(async () => {
        try {
          const answer = await withinTime(command(), options.commandTimeoutMs, () => breaker.answeredLate())
          if (isFaulty && performance.now() - failedMs >= quietMs) {
            isFaulty = false
            options.onRecovered()
          }
          return answer
        } catch (error) {
          const hadConnection = isConnected()
          // What a command without a connection says of itself tells nobody why there is none.
          const fault = toRedisFault(hadConnection ? error : (lostBy ?? error), action)
          if (fault instanceof RedisUnavailableError) isFaulty = true
          if (hadConnection) failedMs = performance.now()
          throw fault
        }
      }),
    lost: (error) => {
      isFaulty = true
      lostBy = error
    },
    isFaulty: () => isFaulty,
    breaker: () => state,
  }
}
