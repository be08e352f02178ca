import { setTimeout as sleep } from 'node:timers/promises'

export interface Growth {
  /** As much as there is to come. */
  readonly expected: number
  /** No more comes when nothing has for so long, milliseconds. */
  readonly quietMs: number
  readonly pollMs: number
}

/** Looks again and again until as much as is expected has come, or no more comes. Resolves to the last look. @throws when the signal fires */
export const untilGrown = async <T>(
  look: () => Promise<T>,
  sizeOf: (seen: T) => number,
  growth: Growth,
  signal: AbortSignal,
): Promise<T> => {
  let size = 0
  let grewAtMs = performance.now()
  for (;;) {
    const seen = await look()
    if (sizeOf(seen) > size) grewAtMs = performance.now()
    size = sizeOf(seen)
    if (size >= growth.expected || performance.now() - grewAtMs > growth.quietMs) return seen
    await pause(growth.pollMs, signal)
  }
}

/** Waits between two looks at a store that cannot be listened to. @throws when the signal fires */
export const pause = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  await sleep(milliseconds, undefined, { signal })
}
