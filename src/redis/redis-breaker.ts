import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleType, isBrokenCircuitError } from 'cockatiel'
import { RedisUnavailableError } from './redis-connection.ts'
import { RedisSilentError } from './redis-fault.ts'

/** `closed`: commands go through. `open`: they fail at once. `half-open`: one is on its way to find out, the others fail at once. */
export type RedisBreakerState = 'closed' | 'open' | 'half-open'

export interface RedisBreaker {
  /** @throws RedisUnavailableError without calling `command` while the breaker is open. */
  run<T>(command: () => Promise<T>): Promise<T>
}

export interface RedisBreakerOptions {
  /** Commands in a row without an answer after which the breaker opens. Default 5. */
  readonly openAfter?: number
  /** How long it stays open before one command may try again. Default 1000. */
  readonly halfOpenAfterMs?: number
  /** Called at every change. */
  readonly onState?: ((state: RedisBreakerState) => void) | undefined
}

const stateNames: Readonly<Record<CircuitState, RedisBreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.Open]: 'open',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Isolated]: 'open',
}

/** Spares callers the wait for a Redis that has stopped answering. Faults that show at once do not open it. */
export const createRedisBreaker = ({
  openAfter = 5,
  halfOpenAfterMs = 1000,
  onState,
}: RedisBreakerOptions = {}): RedisBreaker => {
  const breaker = circuitBreaker(handleType(RedisSilentError), {
    halfOpenAfter: halfOpenAfterMs,
    breaker: new ConsecutiveBreaker(openAfter),
  })
  breaker.onStateChange((state) => onState?.(stateNames[state]))

  /** Whether a command went without an answer since the last one that had it. */
  let isAlert = false

  const runAlert = async <T>(command: () => Promise<T>): Promise<T> => {
    try {
      const result = await breaker.execute(command)
      isAlert = breaker.state !== CircuitState.Closed
      return result
    } catch (error) {
      if (isBrokenCircuitError(error)) throw new RedisUnavailableError('Redis has not answered lately')
      throw error
    }
  }

  /** What an answer means for the breaker, told once the answer is there. */
  const noteAnswer = (): void => {
    if (isAlert && breaker.state === CircuitState.Closed) runAlert(async () => {}).catch(() => {})
  }

  const noteFault = (error: unknown): void => {
    if (!(error instanceof RedisSilentError) || breaker.state !== CircuitState.Closed) return
    isAlert = true
    breaker.execute(() => Promise.reject(error)).catch(() => {})
  }

  return {
    run(command) {
      // cockatiel lets further callers wait for the one that tries; here that would cost each of them the whole time limit.
      if (breaker.state === CircuitState.HalfOpen)
        return Promise.reject(new RedisUnavailableError('Redis has not answered lately'))
      if (isAlert || breaker.state !== CircuitState.Closed) return runAlert(command)
      // As long as all is well the breaker has nothing to count, and the caller waits for the command itself.
      const answer = command()
      void answer.then(noteAnswer, noteFault)
      return answer
    },
  }
}
