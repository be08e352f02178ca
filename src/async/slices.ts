/** Work that would hold the event loop too long at once: it yields where it may pause. */
export type SlicedWork<T> = Generator<undefined, T>

/** Does work in slices. */
export interface Slices {
  /** Resolves with the work's result; rejects with what it throws, or the reason of `signal` if that fires first. */
  run<T>(work: SlicedWork<T>, signal?: AbortSignal): Promise<T>
}

/**
 * Does the first slice of each work at once, so that short work waits for nothing, and of all other slices one in a turn
 * of the event loop, in turn for each work. So however much work there is, other events wait for one slice.
 */
export const createSlices = (): Slices => {
  const waiting: (() => boolean)[] = []

  const next = (): void => {
    const goOn = waiting.shift()
    if (goOn?.() === true) waiting.push(goOn)
    if (waiting.length > 0) setImmediate(next)
  }

  const enqueue = (goOn: () => boolean): void => {
    waiting.push(goOn)
    if (waiting.length === 1) setImmediate(next)
  }

  return {
    run: async (work, signal) => {
      const first = work.next()
      if (first.done === true) return first.value
      return new Promise((resolve, reject) => {
        enqueue(() => {
          try {
            signal?.throwIfAborted()
            const slice = work.next()
            if (slice.done === true) resolve(slice.value)
            return slice.done !== true
          } catch (error) {
            reject(error)
            return false
          }
        })
      })
    },
  }
}
