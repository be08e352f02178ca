import { setTimeout as delay } from 'node:timers/promises'

/** Asks until the answer is there; fails with the last fault when it does not come in time. For conditions that other processes bring about. */
export const eventually = async <T>(
  ask: () => Promise<T> | T,
  options: { readonly timeoutMs?: number } = {},
): Promise<T> => {
  const endMs = performance.now() + (options.timeoutMs ?? 15_000)
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() > endMs) throw error
    }
    await delay(25)
  }
}
