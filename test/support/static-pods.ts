import type { PodSource, PodState } from '../../src/routing/pod.ts'

/** Pods that are ready until a test sets them unready. */
export interface StaticPods extends Pick<PodSource, 'pods' | 'turnStarted' | 'turnEnded' | 'markUnhealthy'> {
  setReady(address: string, isReady: boolean): void
  /** Turns counted in and not out. */
  running(address: string): number
}

export const createStaticPods = (addresses: readonly string[]): StaticPods => {
  const unready = new Set<string>()
  const turns = new Map(addresses.map((address) => [address, new Set<string>()]))
  const running = (address: string): number => turns.get(address)?.size ?? 0
  return {
    pods: () =>
      addresses.map(
        (address): PodState => ({
          address,
          ready: !unready.has(address),
          inFlight: running(address),
          running: 0,
          waiting: 0,
          kvUsage: 0,
        }),
      ),
    turnStarted: (address, turnId) => {
      turns.get(address)?.add(turnId)
    },
    turnEnded: (address, turnId) => {
      turns.get(address)?.delete(turnId)
    },
    markUnhealthy: (address) => {
      unready.add(address)
    },
    setReady: (address, isReady) => {
      if (isReady) unready.delete(address)
      else unready.add(address)
    },
    running,
  }
}
