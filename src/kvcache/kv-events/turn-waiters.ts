/** Lets callers wait until enough is known of a turn. */
export interface TurnWaiters {
  /** Resolves when the turn has at least `minTokens`, and at least one, when the signal fires, or when `release` is called. */
  wait(turn: { readonly turnId: string; readonly minTokens: number }, signal: AbortSignal): Promise<void>
  /** Something new is known of the turn. */
  told(turnId: string): void
  /** Nothing more will come: lets everybody go. */
  release(): void
}

interface Waiter {
  readonly minTokens: number
  readonly leave: () => void
}

export const createTurnWaiters = (lengthOf: (turnId: string) => number): TurnWaiters => {
  const waiting = new Map<string, Set<Waiter>>()

  const join = (turnId: string, waiter: Waiter): void => {
    const others = waiting.get(turnId) ?? new Set()
    waiting.set(turnId, others.add(waiter))
  }
  const part = (turnId: string, waiter: Waiter): void => {
    const others = waiting.get(turnId)
    others?.delete(waiter)
    if (others?.size === 0) waiting.delete(turnId)
  }

  return {
    wait: ({ turnId, minTokens: wanted }, signal) =>
      new Promise((resolve) => {
        const minTokens = Math.max(1, wanted)
        if (signal.aborted || lengthOf(turnId) >= minTokens) return resolve()
        const leave = (): void => {
          signal.removeEventListener('abort', leave)
          part(turnId, waiter)
          resolve()
        }
        const waiter: Waiter = { minTokens, leave }
        join(turnId, waiter)
        signal.addEventListener('abort', leave, { once: true })
      }),
    told: (turnId) => {
      const length = lengthOf(turnId)
      for (const waiter of waiting.get(turnId) ?? []) if (length >= waiter.minTokens) waiter.leave()
    },
    release: () => {
      for (const waiters of waiting.values()) for (const waiter of waiters) waiter.leave()
    },
  }
}
