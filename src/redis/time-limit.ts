import { RedisSilentError } from './redis-fault.ts'

/**
 * The answer, unless it takes longer than `limitMs`; `onLate` is called when it comes after that.
 *
 * A process stalled beyond the limit finds timer and answer together, and Node runs timers first. So the limit holds
 * only once the socket is read: with ioredis' `commandTimeout`, a stall of 130 ms fails half the answered calls.
 * @throws RedisSilentError
 */
export const withinTime = <T>(answer: Promise<T>, limitMs: number, onLate = (): void => {}): Promise<T> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(new RedisSilentError(`Redis did not answer within ${limitMs} ms`))
      answer.then(onLate, () => {})
    }
    const timer = setTimeout(() => setImmediate(giveUp), limitMs)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
