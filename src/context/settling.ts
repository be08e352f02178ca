import type { EndTurn } from './end-turn.ts'

/** Remembers which turns are being settled, so that a process that ends can wait for them. */
export const createSettling = (endTurn: EndTurn): { readonly endTurn: EndTurn; settled(): Promise<void> } => {
  const running = new Set<Promise<void>>()
  return {
    endTurn: async (turn) => {
      const settling = endTurn(turn)
      running.add(settling)
      try {
        await settling
      } finally {
        running.delete(settling)
      }
    },
    settled: async () => {
      await Promise.allSettled(running)
    },
  }
}
