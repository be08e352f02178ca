/** Room that nobody reports, as that of requests without a session, is looked for so often, milliseconds. */
const lookAgainMs = 250
/** So many pods at once, and so many milliseconds apart: of more than 50 full pods each is looked at less often. */
const looksAtOnce = 4
const looksApartMs = 20

/** A pod that had no room. */
interface FullPod {
  /** Whether it had none for long work alone. */
  readonly forLongAlone: boolean
  readonly sinceMs: number
}

/**
 * Pods that had no room when work tried them. They count as full until they are opened: when room is reported there, or
 * when it is time to look again. `nowMs` is a monotonic clock.
 */
export const createFullPods = (nowMs: () => number) => {
  /** The one that is full for longest first. */
  const full = new Map<string, FullPod>()
  let nextLookMs = 0

  const lookMs = (): number => {
    const [longest] = full.values()
    return longest === undefined ? Number.POSITIVE_INFINITY : Math.max(longest.sinceMs + lookAgainMs, nextLookMs)
  }

  return {
    /** Whether the pod may have room. `isShort`: whether most of the prompt's KV is there, or can be loaded. */
    hasRoom: (pod: string, isShort: () => boolean): boolean => {
      const found = full.get(pod)
      return found === undefined || (found.forLongAlone && isShort())
    },
    mark: (pod: string, forLongAlone: boolean): void => {
      full.delete(pod)
      full.set(pod, { forLongAlone, sinceMs: nowMs() })
    },
    /** There may be room; false: the pod was not full. */
    open: (pod: string): boolean => full.delete(pod),
    /** When to look again. */
    lookMs,
    /** The pods to look at now. All that are due, if no work waits that would try them at once. */
    due: (waiting: number): readonly string[] => {
      const now = nowMs()
      if (lookMs() > now) return []
      nextLookMs = now + looksApartMs
      const longest = [...full].slice(0, waiting === 0 ? full.size : looksAtOnce)
      return longest.flatMap(([pod, { sinceMs }]) => (sinceMs + lookAgainMs <= now ? [pod] : []))
    },
  }
}
