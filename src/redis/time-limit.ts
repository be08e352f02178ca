import { RedisSilentError } from './redis-fault.ts'

/**
 * The answer, unless it takes longer than `limitMs`.
 *
 * A process that was busy for longer than the limit finds the timer and the answer together, and Node runs timers first. So the limit holds
 * only after the socket has been read: with ioredis' own `commandTimeout` a stall of 130 ms fails half of the calls that Redis has answered.
 *
 * @throws RedisSilentError
 */
export const withinTime = <T>(answer: Promise<T>, limitMs: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new RedisSilentError(`Redis did not answer within ${limitMs} ms`))
    const timer = setTimeout(() => setImmediate(giveUp), limitMs)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
