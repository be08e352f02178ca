/** A time limit joined with a caller's signal. */
export interface Deadline {
  /** Aborts when the time is up or the caller's signal aborts, whichever comes first. */
  readonly signal: AbortSignal
  hasPassed(): boolean
  /** Lets go of timer and caller, and aborts what still runs under the signal. Has to be called when the work is done. */
  end(): void
}

/**
 * `AbortSignal.any` and `AbortSignal.timeout` would say the same, but Node 20 may collect such a signal as garbage before
 * its time, and keeps a listener on the caller's signal for each.
 */
export function startDeadline(options: {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}): Deadline {
  const controller = new AbortController()
  let passed = false
  const timer = setTimeout(() => {
    passed = !controller.signal.aborted
    controller.abort()
  }, options.timeoutMs)
  const abort = (): void => controller.abort(options.signal?.reason)
  options.signal?.addEventListener('abort', abort, { once: true })
  if (options.signal?.aborted === true) abort()
  return {
    signal: controller.signal,
    hasPassed: () => passed,
    end() {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', abort)
      controller.abort()
    },
  }
}
