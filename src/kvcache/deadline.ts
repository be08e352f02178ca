import { setMaxListeners } from 'node:events'

/**
 * A signal that fires when `signal` does, or after `limitMs`. `AbortSignal.any` with `AbortSignal.timeout` says the same, but Node 20 may collect
 * such a signal as garbage before it fires. Any number of parties may listen to it.
 */
export interface Deadline {
  readonly signal: AbortSignal
  /** Frees the timer and lets go of the other signal. */
  end(): void
}

export const startDeadline = (signal: AbortSignal | undefined, limitMs: number): Deadline => {
  const controller = new AbortController()
  // Node takes more than ten listeners for a leak, and work may ask as many pods at once.
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

/** What `work` resolves to, or `onAbort()` if the signal fires before. `work` goes on by itself then. */
export const untilAborted = async <T, U>(work: Promise<T>, signal: AbortSignal, onAbort: () => U): Promise<T | U> => {
  if (signal.aborted) return onAbort()
  let stop = (): void => {}
  const aborted = new Promise<U>((resolve) => {
    const listener = (): void => resolve(onAbort())
    signal.addEventListener('abort', listener, { once: true })
    stop = () => signal.removeEventListener('abort', listener)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    stop()
  }
}
