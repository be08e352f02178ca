import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after `milliseconds`, or at once when `signal` fires. Never rejects. */
export const pause = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined)
}
