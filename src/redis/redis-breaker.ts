import { RedisUnavailableError } from './redis-connection.ts'
import { RedisSilentError } from './redis-fault.ts'

/** `closed`: commands run. `open`: they fail at once. `half-open`: one command tries, the others fail at once. */
export type RedisBreakerState = 'closed' | 'open' | 'half-open'

export interface RedisBreakerOptions {
  /** Commands in a row without an answer after which the breaker opens. Default 5. */
  readonly openAfter?: number
  /** How long it stays open before one command may try again. Default 1000. */
  readonly halfOpenAfterMs?: number
  /** Called at every change. */
  readonly onState?: ((state: RedisBreakerState) => void) | undefined
}

/** Spares callers the time limit of a Redis that has stopped answering. Faults that show at once do not open it. */
export const createRedisBreaker = ({ openAfter = 5, halfOpenAfterMs = 1000, onState }: RedisBreakerOptions = {}) => {
  let state: RedisBreakerState = 'closed'
  let silentInARow = 0
  let openedMs = 0

  const become = (next: RedisBreakerState): void => {
    if (next === state) return
    state = next
    if (next === 'open') openedMs = performance.now()
    onState?.(next)
  }

  const note = (isSilent: boolean, isTrial: boolean): void => {
    // While the breaker is open, commands that began before say nothing new.
    if (state !== 'closed' && !isTrial) return
    silentInARow = isSilent ? silentInARow + 1 : 0
    become(silentInARow >= openAfter ? 'open' : 'closed')
  }

  return {
    /** A command was answered, too late for its caller: the next one may try at once. */
    answeredLate(): void {
      if (state === 'open') openedMs = Number.NEGATIVE_INFINITY
    },
    /** @throws RedisUnavailableError without calling `command` while the breaker is open. */
    async run<T>(command: () => Promise<T>): Promise<T> {
      const mayTry = state === 'open' && performance.now() - openedMs >= halfOpenAfterMs
      if (state !== 'closed' && !mayTry) throw new RedisUnavailableError('Redis has not answered lately')
      if (mayTry) become('half-open')
      try {
        const answer = await command()
        note(false, mayTry)
        return answer
      } catch (error) {
        note(error instanceof RedisSilentError, mayTry)
        throw error
      }
    },
  }
}
