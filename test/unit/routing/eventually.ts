import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves as soon as `check` passes; after five seconds it fails as `check` does. */
export const eventually = async (check: () => void): Promise<void> => {
  const giveUpAtMs = performance.now() + 5_000
  for (;;) {
    try {
      check()
      return
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error
    }
    await sleep(2)
  }
}
