/** Redis did not answer a command within its time limit. */
export class AnswerLateError extends Error {
  override readonly name = 'AnswerLateError'
}

/**
 * Waits for an answer, but no longer than `limitMs`. A process that was busy for longer finds its timer and the answer that came meanwhile
 * together, and Node runs timers first: so what lies in the socket is read before the answer counts as late. Else a burst of requests would
 * look like an outage.
 *
 * @throws AnswerLateError
 */
export const answerInTime = <T>(answer: Promise<T>, limitMs: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new AnswerLateError(`no answer within ${limitMs} ms`))
    const timer = setTimeout(() => setImmediate(giveUp), limitMs)
    const settle =
      <V>(outcome: (value: V) => void) =>
      (value: V): void => {
        clearTimeout(timer)
        outcome(value)
      }
    answer.then(settle(resolve), settle(reject))
  })
