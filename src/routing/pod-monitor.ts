import { createLoop, type Loop } from '../async/loop.ts'
import type { EngineAccess } from '../engines/engine-http.ts'
import type { EngineLoad } from './engine-metrics.ts'
import { InFlightTurns } from './in-flight-turns.ts'
import type { PodAddress, PodSource, PodState } from './pod.ts'
import { createPodProbe, type PodProbe, type ProbeResult } from './pod-probe.ts'
import { restrictModels, type ServedModels } from './served-models.ts'

/** A change of the pods, for the log. */
export type PodChange =
  | { readonly kind: 'added' | 'removed' | 'ready'; readonly address: PodAddress }
  /** The pod gets no more turns. */
  | { readonly kind: 'failing'; readonly address: PodAddress; readonly reason: string }
  /** The engine refuses the gateway's credential, or no longer does. It still gets turns, with the client's own. */
  | { readonly kind: 'unauthorized'; readonly address: PodAddress; readonly reason: string }
  | { readonly kind: 'authorized'; readonly address: PodAddress }
  /** The name of the pods could not be resolved; the known pods stay. */
  | { readonly kind: 'resolve-failed'; readonly name: string; readonly reason: string }
  | ListChange

/** Whether a list of Kubernetes, such as `pods`, follows the cluster. While it is stale the known pods stay. */
export type ListChange =
  | { readonly kind: 'list-stale'; readonly name: string; readonly reason: string }
  | { readonly kind: 'list-current'; readonly name: string }

/** What is known of a pod besides its own answers. */
export interface PodFacts {
  /** False: it gets no turns, however well it answers. */
  readonly isServing: boolean
  /** The engine cannot be asked: it counts as healthy, and its load and models are unknown. Default: it is asked. */
  readonly isUnchecked?: boolean | undefined
  /** Its only model. Default: those of the pool. */
  readonly model?: string | undefined
  readonly instance?: string | undefined
}

/** Options that all pod sources share. */
export interface PodMonitorOptions {
  /** From the start of one check of a pod to the start of the next, milliseconds. */
  readonly healthIntervalMs: number
  /** Limit of one check, milliseconds. */
  readonly healthTimeoutMs: number
  /** A turn without a `turnEnded` is dropped after this time. */
  readonly turnLeaseMs: number
  /** Models of the pods; of those that an engine lists, others are ignored. Default: all that it lists. */
  readonly models?: readonly string[] | undefined
  /** Must not throw. */
  readonly onChange: (change: PodChange) => void
  /** How checks reach the pods. Default: plain HTTP without a credential. */
  readonly access?: EngineAccess | undefined
  /** Closed by `stop`. Default: asks the pods by `access`. */
  readonly probe?: PodProbe
}

/** Watches the health and the load of a set of pods. Shared by all pod sources. */
export interface PodMonitor extends Omit<PodSource, 'start'> {
  /** Replaces the pods by `addresses`, in this order, and their facts. Resolves when each new one was checked once. */
  watch(addresses: readonly PodAddress[], facts?: ReadonlyMap<PodAddress, PodFacts>): Promise<void>
}

/** A pod gets no more turns after this many failed checks in a row: a single one may be chance. */
const failuresUntilOut = 2
/** A report of the load is dropped after this many checks in a row without a new one. */
const checksUntilStale = 3
/** Longer than Envoy takes to learn a pod from DNS. Before, it would send a turn of this pod to another one. */
const newForMs = 10_000

/** A source whose list of pods `loop` renews. */
export const renewedBy = (loop: Loop, monitor: PodMonitor): PodSource => ({
  ...monitor,
  start: () => loop.start(),
  // The monitor first: a run under way may wait for its checks.
  stop: async () => {
    const stopped = loop.stop()
    await monitor.stop()
    await stopped
  },
})

export const createPodMonitor = (options: PodMonitorOptions): PodMonitor => {
  const { access, onChange } = options
  const { probe = createPodProbe({ deadlineMs: options.healthTimeoutMs, access }) } = options
  let watches: readonly PodWatch[] = []
  const watchOf = (address: PodAddress): PodWatch | undefined => watches.find((watch) => watch.address === address)

  return {
    pods: () => watches.map((watch) => watch.state()),
    turnStarted: (address, turnId) => watchOf(address)?.turns.started(turnId),
    turnEnded: (address, turnId) => watchOf(address)?.turns.ended(turnId),
    markUnhealthy: (address) => watchOf(address)?.markUnhealthy(),
    watch: async (addresses, facts) => {
      const before = watches
      watches = [...new Set(addresses)].map((address) => {
        const watch = watchOf(address) ?? createPodWatch({ ...options, probe, address, isLate: before.length > 0 })
        watch.learn(facts?.get(address) ?? noFacts)
        return watch
      })
      const added = watches.filter((watch) => !before.includes(watch))
      const removed = before.filter((watch) => !watches.includes(watch))
      for (const { address } of added) onChange({ kind: 'added', address })
      for (const { address } of removed) onChange({ kind: 'removed', address })
      await Promise.all([...added.map((watch) => watch.start()), ...removed.map((watch) => watch.stop())])
    },
    stop: async () => {
      await Promise.all(watches.map((watch) => watch.stop()))
      await probe.close()
    },
  }
}

type PodWatch = ReturnType<typeof createPodWatch>

const noFacts: PodFacts = { isServing: true }
const unasked: ProbeResult = { problem: undefined, load: undefined }
const unknownLoad = { running: 0, waiting: 0, kvUsage: 0, inFlightAtRead: 0 }

/** Checks one pod in a loop. */
const createPodWatch = (
  /** `isLate`: the pod was not in the first list. */
  options: PodMonitorOptions & { readonly address: PodAddress; readonly probe: PodProbe; readonly isLate: boolean },
) => {
  const { address, probe, onChange } = options
  const turns = new InFlightTurns({ turnLeaseMs: options.turnLeaseMs, nowMs: () => performance.now() })
  let isHealthy = false
  let facts: PodFacts = { isServing: !options.isLate }
  let servesSinceMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let markings = 0
  let load: EngineLoad & { readonly inFlightAtRead: number } = unknownLoad
  let listed: ServedModels | undefined
  let models: ServedModels | undefined
  let checksWithoutLoad = 0
  let isAuthorized = true

  const isReady = (): boolean => isHealthy && facts.isServing

  /** Reports if the pod is ready after `change` and was not before it, or the other way round. */
  const apply = (change: () => void, reason: string): void => {
    const before = isReady()
    change()
    if (before !== isReady()) onChange(before ? { kind: 'failing', address, reason } : { kind: 'ready', address })
  }

  const setHealthy = (to: boolean, reason: string): void =>
    apply(() => {
      isHealthy = to
    }, reason)

  const readModels = (): void => {
    models = restrictModels(listed, facts.model === undefined ? (options.models ?? []) : [facts.model])
  }

  const readLoad = (reported: EngineLoad | undefined): void => {
    checksWithoutLoad = reported === undefined ? checksWithoutLoad + 1 : 0
    if (reported !== undefined) {
      turns.reported(reported.running + reported.waiting)
      load = { ...reported, inFlightAtRead: turns.count() }
    } else if (checksWithoutLoad >= checksUntilStale) load = unknownLoad
  }

  const readRefusal = (reason: string | undefined): void => {
    if (isAuthorized === (reason === undefined)) return
    isAuthorized = reason === undefined
    onChange(reason === undefined ? { kind: 'authorized', address } : { kind: 'unauthorized', address, reason })
  }

  const check = async (stopping: AbortSignal): Promise<void> => {
    const markingsBefore = markings
    const result = facts.isUnchecked ? unasked : await probe.probe(address, stopping)
    if (stopping.aborted) return
    readLoad(result.load)
    if (result.models !== undefined) {
      listed = result.models
      readModels()
    }
    // An engine that does not answer has not changed its mind.
    if (result.problem === undefined) readRefusal(result.refusal)
    if (result.problem !== undefined) {
      failures += 1
      if (failures >= failuresUntilOut) setHealthy(false, result.problem)
      return
    }
    // A turn failed at the pod while this check ran: the answer may be older than the failure.
    if (markings !== markingsBefore) return
    failures = 0
    setHealthy(true, 'healthy')
  }

  return {
    ...createLoop({ work: check, intervalMs: options.healthIntervalMs }),
    address,
    turns,
    state: (): PodState => ({
      address,
      ready: isReady(),
      isNew: performance.now() - servesSinceMs < newForMs,
      inFlight: turns.count(),
      models,
      instance: facts.instance,
      ...load,
    }),
    markUnhealthy: (): void => {
      markings += 1
      setHealthy(false, 'upstream failure reported by a turn')
    },
    learn: (next: PodFacts) =>
      apply(() => {
        if (next.isServing && !facts.isServing) servesSinceMs = performance.now()
        facts = next
        readModels()
      }, 'not ready in Kubernetes'),
  }
}
