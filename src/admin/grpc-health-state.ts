/** Whether this process can be used, for everything that asks: probes, load balancers, the admin interface. */
export interface HealthState {
  /** `false` at first. Set to `true` once requests can be served, and to `false` again before a drain. */
  setServing(serving: boolean): void
  isServing(): boolean
  /** Calls `listener` at every change. Returns what stops that. */
  onChange(listener: (serving: boolean) => void): () => void
}

export const createHealthState = (): HealthState => {
  const listeners = new Set<(serving: boolean) => void>()
  let current = false
  return {
    setServing: (serving) => {
      if (serving === current) return
      current = serving
      for (const listener of listeners) listener(serving)
    },
    isServing: () => current,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
