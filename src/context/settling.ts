import type { EndTurn } from './end-turn.ts'

/** Remembers which turns are being settled, so that a process that ends can wait until none is. */
export const createSettling = (endTurn: EndTurn): { readonly endTurn: EndTurn; settled(): Promise<void> } => {
  let running = 0
  const waiting: (() => void)[] = []

  const over = (): void => {
    running -= 1
    if (running > 0) return
    for (const resolve of waiting.splice(0)) resolve()
  }

  return {
    endTurn: (ticket, turn) => {
      const settling = endTurn(ticket, turn)
      running += 1
      settling.then(over, over)
      return settling
    },
    settled: () =>
      new Promise((resolve) => {
        if (running === 0) resolve()
        else waiting.push(resolve)
      }),
  }
}
