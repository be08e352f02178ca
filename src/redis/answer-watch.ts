/** Redis did not answer a command within its time limit. */
export class AnswerLateError extends Error {
  override readonly name = 'AnswerLateError'
}

/**
 * Waits for the answer to a call that has just been made, but no longer than the watch's limit. A call that was given up counts as
 * unanswered until its own promise settles. Rejects with what `toFault` makes of the call's own error, or of an `AnswerLateError`.
 */
export type AnswerWatch = <T>(answer: Promise<T>, toFault: (error: unknown) => Error) => Promise<T>

export interface AnswerWatchOptions {
  /** How long a call may wait for its answer, in milliseconds. */
  readonly limitMs: number
  /** How long calls may be unanswered without an answer to any of them, in milliseconds; no less than `limitMs`. */
  readonly silenceMs: number
  /** Told when that time is over, and again each time it passes anew. */
  readonly onSilence: () => void
  /** A clock in milliseconds that never goes back. Default: the process' own. */
  readonly now?: () => number
}

/** A call within its limit. It takes itself out as soon as it is settled, and lets go of its neighbours: so the list never has more than what waits. */
interface WaitingCall {
  readonly askedMs: number
  readonly reject: (error: Error) => void
  readonly toFault: (error: unknown) => Error
  isListed: boolean
  before: WaitingCall | undefined
  after: WaitingCall | undefined
}

/**
 * One watch for all calls of a connection, with one timer. The timer is not cleared when a call settles, and mostly finds nothing to do: what it takes
 * to make one for each call, or to move it, is more than a call alone takes otherwise.
 *
 * A process that was busy for longer than the limit finds the timer and the answers that came meanwhile together, and Node runs timers first: so what
 * lies in the socket is read before anything counts as late. Else a burst of requests would look like an outage.
 */
export const createAnswerWatch = ({
  limitMs,
  silenceMs,
  onSilence,
  now = () => performance.now(),
}: AnswerWatchOptions): AnswerWatch => {
  let first: WaitingCall | undefined
  let last: WaitingCall | undefined
  let unanswered = 0
  /** When the last answer came, or the first call after all had been answered. */
  let silentSinceMs = 0
  let isArmed = false

  const append = (call: WaitingCall): void => {
    call.before = last
    if (last === undefined) first = call
    else last.after = call
    last = call
  }

  const takeOut = (call: WaitingCall): void => {
    const { before, after } = call
    if (before === undefined) first = after
    else before.after = after
    if (after === undefined) last = before
    else after.before = before
    call.before = undefined
    call.after = undefined
    call.isListed = false
  }

  const settled = (call: WaitingCall): void => {
    unanswered -= 1
    silentSinceMs = now()
    if (call.isListed) takeOut(call)
  }

  const arm = (delayMs: number): void => {
    isArmed = true
    setTimeout(onTimer, Math.ceil(delayMs)).unref()
  }

  const onTimer = (): void => {
    // Nothing that is asked from now on can be late yet, however long what is read meanwhile keeps the process.
    const dueMs = now()
    setImmediate(() => look(dueMs))
  }

  const look = (dueMs: number): void => {
    while (first !== undefined && dueMs - first.askedMs >= limitMs) {
      const { reject, toFault } = first
      takeOut(first)
      reject(toFault(new AnswerLateError(`no answer within ${limitMs} ms`)))
    }
    if (unanswered > 0 && dueMs - silentSinceMs >= silenceMs) {
      silentSinceMs = dueMs
      onSilence()
    }
    isArmed = false
    if (unanswered === 0) return
    const nextMs = Math.min((first?.askedMs ?? Number.POSITIVE_INFINITY) + limitMs, silentSinceMs + silenceMs)
    // Never later than what may be asked meanwhile can wait.
    arm(Math.min(nextMs - now(), limitMs))
  }

  return (answer, toFault) =>
    new Promise((resolve, reject) => {
      const askedMs = now()
      const call: WaitingCall = { askedMs, reject, toFault, isListed: true, before: undefined, after: undefined }
      append(call)
      if (unanswered === 0) silentSinceMs = askedMs
      unanswered += 1
      if (!isArmed) arm(limitMs)
      answer.then(
        (value) => {
          settled(call)
          resolve(value)
        },
        (error: unknown) => {
          settled(call)
          reject(toFault(error))
        },
      )
    })
}
