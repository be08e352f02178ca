import type { EngineLoad } from './engine-metrics.ts'
import type { ServedModels } from './served-models.ts'

/** `host:port` of one engine, exactly as Envoy's cluster names it. */
export type PodAddress = string

/** `host:port`, or `[ipv6]:port`. */
export const addressOf = (host: string, port: number): PodAddress =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** The state of one engine as the router knows it, with the load that it reported last. */
export interface PodState extends EngineLoad {
  readonly address: PodAddress
  /** Answers its health check, and no turn has reported a failure since. */
  readonly ready: boolean
  /** It serves so recently that Envoy may not know it: while other pods are ready, it gets no turns. Default: false. */
  readonly isNew?: boolean
  /** Turns that this gateway process sent to the pod and that have not ended yet. */
  readonly inFlight: number
  /** The models that the engine lists. Default: unknown. */
  readonly models?: ServedModels | undefined
  /** Id of the engine's LMCache instance. Default: not known. */
  readonly instance?: string | undefined
  /** `inFlight` at the engine's report: the part of `running` and `waiting` that is this gateway's own. Default 0. */
  readonly inFlightAtRead?: number
  /** Predicted milliseconds until the pod has computed all prompts that this gateway sent to it. Default 0. */
  readonly prefillBacklogMs?: number
}

/** Provides the pods and their states. */
export interface PodSource {
  /** All pods that are known, ready or not, in the configured order. Reads memory only. */
  pods(): readonly PodState[]
  /** Counts a turn in. A turn without a `turnEnded` is dropped after the turn lease. */
  turnStarted(address: PodAddress, turnId: string): void
  turnEnded(address: PodAddress, turnId: string): void
  /** A turn failed at this pod (connection refused, reset): it gets no turns until its health check succeeds again. */
  markUnhealthy(address: PodAddress): void
  /** Starts to watch the pods. Resolves after the first round of checks, whatever their results; never rejects. */
  start(): Promise<void>
  /** Stops all checks and closes the connections to the pods. */
  stop(): Promise<void>
}

/** At least one pod. */
export type Pods = readonly [PodState, ...PodState[]]

/** Requests at a pod: this process' turns, exact at any time, and those of others by the engine's last report. */
export const podLoad = (pod: PodState): number =>
  pod.inFlight + Math.max(0, pod.running + pod.waiting - (pod.inFlightAtRead ?? 0))

/** The pods with the lowest value of `costOf`, in their order: at least one. */
export const lowest = (pods: Pods, costOf: (pod: PodState) => number): Pods => {
  const [first, ...others] = pods
  let best: [PodState, ...PodState[]] = [first]
  let bestCost = costOf(first)
  for (const pod of others) {
    const cost = costOf(pod)
    if (cost === bestCost) best.push(pod)
    if (cost >= bestCost) continue
    best = [pod]
    bestCost = cost
  }
  return best
}

/** The pods with the fewest requests: at least one. */
export const leastLoaded = (pods: Pods): Pods => lowest(pods, podLoad)

/** A number from 0 up to, but not including, 1. */
export type RandomSource = () => number

/** One of the pods, each with the same probability. */
export const randomPod = (pods: Pods, random: RandomSource): PodState =>
  pods[Math.floor(random() * pods.length)] ?? pods[0]
