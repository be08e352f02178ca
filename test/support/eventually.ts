import { setTimeout as delay, setImmediate } from 'node:timers/promises'

/** Polls of a condition that follow each other at once, before there are pauses between them. */
const eagerPolls = 20

/**
 * Waits for a condition: repeats `ask` until it returns something other than `false` without throwing; returns that.
 * @throws the last error, or an Error that names the time limit (default: 60,000 ms), when that does not happen in time
 */
export const eventually = async <T>(
  ask: () => Promise<T> | T,
  options: { readonly timeoutMs?: number } = {},
): Promise<Exclude<T, false>> => {
  const { timeoutMs = 60_000 } = options
  const startMs = performance.now()
  const endMs = startMs + timeoutMs
  let failure: unknown
  for (let polls = 0; polls === 0 || performance.now() < endMs; polls += 1) {
    try {
      const found = await ask()
      if (found !== false) return found as Exclude<T, false>
      failure = new Error(`the condition was still false after ${timeoutMs} ms`)
    } catch (error) {
      failure = error
    }
    // Polls would take the processors from what they wait for: the longer it takes, the longer the pauses.
    await (polls < eagerPolls ? setImmediate() : delay(Math.max(10, (performance.now() - startMs) / 20)))
  }
  throw failure
}
