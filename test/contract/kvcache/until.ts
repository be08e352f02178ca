import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 5

/** Waits for a condition. @throws Error when it does not come true in time. */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  { withinMs = 10_000 }: { readonly withinMs?: number } = {},
): Promise<void> => {
  const deadline = AbortSignal.timeout(withinMs)
  while (!(await condition())) {
    deadline.throwIfAborted()
    await delay(pollMs)
  }
}
