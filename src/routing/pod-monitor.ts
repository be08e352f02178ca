import type { EngineLoad } from './engine-metrics.ts'
import { createInFlightTurns } from './in-flight-turns.ts'
import { pause } from './pause.ts'
import type { PodAddress, PodSource, PodState } from './pod.ts'
import type { PodProbe } from './pod-probe.ts'

/** Something about the pods changed: for the log. */
export type PodChange =
  | { readonly kind: 'added' | 'removed' | 'ready'; readonly address: PodAddress }
  /** It takes no more turns. */
  | { readonly kind: 'failing'; readonly address: PodAddress; readonly reason: string }
  /** The name of the pods could not be resolved; those that are known stay. */
  | { readonly kind: 'resolve-failed'; readonly name: string; readonly reason: string }

/** What every pod source can be told about watching its pods. */
export interface PodMonitorOptions {
  /** From the start of one check of a pod to the start of the next, milliseconds. */
  readonly healthIntervalMs: number
  /** A turn that is not counted out is forgotten after this time. */
  readonly turnLeaseMs: number
  /** Must not throw. */
  readonly onChange: (change: PodChange) => void
}

/** Watches a set of pods: is each ready, and how busy is it? Shared by all pod sources. */
export interface PodMonitor extends Omit<PodSource, 'start'> {
  /** Makes `addresses` the pods, in this order. Resolves when each that is new was checked once. */
  watch(addresses: readonly PodAddress[]): Promise<void>
}

/** Checks in a row that must fail before a pod is left out: one may be a hiccup. */
const failuresUntilOut = 2

/** Closes `probe` when it stops. */
export const createPodMonitor = (options: PodMonitorOptions & { readonly probe: PodProbe }): PodMonitor => {
  const turns = createInFlightTurns({ turnLeaseMs: options.turnLeaseMs, nowMs: () => performance.now() })
  let watches: readonly PodWatch[] = []

  return {
    pods: () => watches.map((watch) => watch.state()),
    turnStarted: (address, turnId) => turns.started(address, turnId),
    turnEnded: (address, turnId) => turns.ended(address, turnId),
    markUnhealthy: (address) => {
      watches.find((watch) => watch.address === address)?.markUnhealthy()
    },
    watch: async (addresses) => {
      const wanted = [...new Set(addresses)]
      const before = new Map(watches.map((watch) => [watch.address, watch]))
      const added: PodWatch[] = []
      watches = wanted.map((address) => {
        const known = before.get(address)
        if (known !== undefined) return known
        const created = createPodWatch({ ...options, address, inFlight: () => turns.count(address) })
        added.push(created)
        return created
      })
      for (const { address } of added) options.onChange({ kind: 'added', address })
      const removed = [...before.values()].filter((watch) => !watches.includes(watch))
      for (const { address } of removed) options.onChange({ kind: 'removed', address })
      await Promise.all([...added.map((watch) => watch.start()), ...removed.map((watch) => watch.stop())])
    },
    stop: async () => {
      await Promise.all(watches.map((watch) => watch.stop()))
      await options.probe.close()
    },
  }
}

interface PodWatch {
  readonly address: PodAddress
  state(): PodState
  markUnhealthy(): void
  /** Resolves after the first check. */
  start(): Promise<void>
  stop(): Promise<void>
}

const createPodWatch = (
  options: PodMonitorOptions & {
    readonly address: PodAddress
    readonly probe: PodProbe
    readonly inFlight: () => number
  },
): PodWatch => {
  const { address } = options
  const stopping = new AbortController()
  let ready = false
  let failures = 0
  let markings = 0
  let lastCheckAtMs = 0
  let load: EngineLoad & { readonly inFlightAtRead: number } = { running: 0, waiting: 0, kvUsage: 0, inFlightAtRead: 0 }
  let loop: Promise<void> | undefined

  const takeOut = (reason: string): void => {
    if (!ready) return
    ready = false
    options.onChange({ kind: 'failing', address, reason })
  }

  const check = async (): Promise<void> => {
    lastCheckAtMs = performance.now()
    const markingsBefore = markings
    const result = await options.probe.probe(address, stopping.signal)
    if (stopping.signal.aborted) return
    if (result.load !== undefined) load = { ...result.load, inFlightAtRead: options.inFlight() }
    if (result.problem !== undefined) {
      failures += 1
      if (failures >= failuresUntilOut) takeOut(result.problem)
      return
    }
    // A turn saw the pod fail while this check ran: the answer may be older than the failure.
    if (markings !== markingsBefore) return
    failures = 0
    if (ready) return
    ready = true
    options.onChange({ kind: 'ready', address })
  }

  const checkFromNowOn = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await pause(Math.max(0, lastCheckAtMs + options.healthIntervalMs - performance.now()), stopping.signal)
      if (!stopping.signal.aborted) await check()
    }
  }

  return {
    address,
    // Named one by one, as in the forecast.
    state: () => ({
      address,
      ready,
      inFlight: options.inFlight(),
      running: load.running,
      waiting: load.waiting,
      kvUsage: load.kvUsage,
      inFlightAtRead: load.inFlightAtRead,
    }),
    markUnhealthy: () => {
      markings += 1
      takeOut('a turn saw it fail')
    },
    start: async () => {
      const first = check()
      loop = first.then(checkFromNowOn)
      await first
    },
    stop: async () => {
      stopping.abort()
      await loop
    },
  }
}
