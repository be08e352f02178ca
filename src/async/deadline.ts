import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A signal that fires when `signal` does, or after `limitMs`. It takes any number of listeners. `AbortSignal.any` with
 * `AbortSignal.timeout` does the same, but its timer stays until the limit, however early the work ends.
 */
export interface Deadline {
  readonly signal: AbortSignal
  /** Clears the timer and removes the listener from the other signal. */
  end(): void
}

/** The signal aborts with a `TimeoutError`, or with the reason of `signal`. */
export const startDeadline = (signal: AbortSignal | undefined, limitMs: number): Deadline => {
  const controller = new AbortController()
  // Node warns of a leak above ten listeners, and work may call as many pods at once.
  setMaxListeners(0, controller.signal)
  const follow = (): void => controller.abort(signal?.reason)
  const timer = setTimeout(
    () => controller.abort(new DOMException(`no answer within ${limitMs} ms`, 'TimeoutError')),
    limitMs,
  )
  if (signal?.aborted === true) follow()
  else signal?.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    end: () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', follow)
    },
  }
}

/** Runs `work` with a signal that fires after `limitMs`, or when `signal` does; its timer ends with the work. */
export const withinLimit = async <T>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> => {
  const deadline = startDeadline(signal, limitMs)
  try {
    return await work(deadline.signal)
  } finally {
    deadline.end()
  }
}

/** Resolves with `work`; if the signal fires first, with `onAbort()`, which may throw, while `work` continues. */
export const untilAborted = async <T, U>(work: Promise<T>, signal: AbortSignal, onAbort: () => U): Promise<T | U> => {
  if (signal.aborted) return onAbort()
  let stop = (): void => {}
  const aborted = new Promise<void>((resolve) => {
    const listener = (): void => resolve()
    signal.addEventListener('abort', listener, { once: true })
    stop = () => signal.removeEventListener('abort', listener)
  })
  try {
    // Not in the listener: what it throws there ends the process.
    return await Promise.race([work, aborted.then(onAbort)])
  } finally {
    stop()
  }
}

/** How long work may take to settle after its signal. */
const settleMs = 1_000

/** As `withinLimit`; work that ignores its signal is left to itself, and `onLate()`, which may throw, is its outcome. */
export const settledWithin = <T>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  onLate: () => T,
  signal?: AbortSignal,
): Promise<T> => {
  const start = async (limited: AbortSignal): Promise<T> => {
    const running = work(limited)
    return untilAborted(running, limited, () => withinLimit(settleMs, (late) => untilAborted(running, late, onLate)))
  }
  return withinLimit(limitMs, start, signal)
}

/** Resolves with `work`; after `limitMs`, or when `signal` fires, with undefined, while `work` continues. */
export const within = <T>(limitMs: number, work: Promise<T>, signal?: AbortSignal): Promise<T | undefined> =>
  withinLimit(limitMs, (limited) => untilAborted(work, limited, () => undefined), signal)

/** Resolves after `milliseconds`, or at once when `signal` fires. Never rejects. */
export const pause = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined)
}
