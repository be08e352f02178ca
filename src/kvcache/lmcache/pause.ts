import { setTimeout as sleep } from 'node:timers/promises'

/** Waits between two looks at a store that cannot be listened to. @throws when the signal fires */
export const pause = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
  await sleep(milliseconds, undefined, { signal })
}
