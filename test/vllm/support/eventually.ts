import { setTimeout as delay } from 'node:timers/promises'

const pollMs = 50

/** Asks again and again until the answer satisfies, and gives that; the last answer stands in the error when time is up. */
export const eventually = async <T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  timeoutMs = 30_000,
): Promise<T> => {
  const endMs = Date.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (satisfies(answer)) return answer
    if (Date.now() > endMs) throw new Error(`not after ${timeoutMs} ms; last: ${JSON.stringify(answer)?.slice(0, 500)}`)
    await delay(pollMs)
  }
}
