import { join } from 'node:path'
import type { FleetPorts } from './fleet-ports.ts'

/** Everything that is decided before the first server starts. */
export interface FleetPlan {
  /** From `ensurePythonEnvironment`. */
  readonly interpreter: string
  /** Working directory of every server; `modelPath` counts from here. */
  readonly folder: string
  readonly modelPath: string
  readonly ports: FleetPorts
  /** Holds the store and the logs. */
  readonly workFolder: string
  /** Holds the sockets; its name has to be short, for a socket's path ends at 107 characters. */
  readonly socketFolder: string
  /** The fleet's name, part of the names of LMCache's shared memory, which all fleets of the machine share. */
  readonly fleetName: string
}

/** The name in requests to vLLM. */
export const servedModelName = 'small-random'
/** The size of vLLM's KV blocks on a CPU. Chunks of the same size make every full block loadable. */
export const chunkTokens = 128
export const maxModelTokens = 8192

/** `pod-0`, `pod-1`, … */
export const instanceId = (pod: number): string => `pod-${pod}`

export const l2Directory = (plan: Pick<FleetPlan, 'workFolder'>): string => join(plan.workFolder, 'l2')
export const logFolder = (plan: Pick<FleetPlan, 'workFolder'>): string => join(plan.workFolder, 'logs')
export const controlSocket = (plan: Pick<FleetPlan, 'socketFolder'>): string => join(plan.socketFolder, 'control')

/** Name of the memory that one LMCache server shares with its pod. */
export const sharedMemoryName = (plan: Pick<FleetPlan, 'fleetName'>, pod: number): string =>
  `lmc-${plan.fleetName}-${instanceId(pod)}`

export const kvEventEndpoints = (
  plan: Pick<FleetPlan, 'socketFolder'>,
  pod: number,
): { readonly endpoint: string; readonly replayEndpoint: string } => ({
  endpoint: `ipc://${join(plan.socketFolder, `events-${pod}`)}`,
  replayEndpoint: `ipc://${join(plan.socketFolder, `replay-${pod}`)}`,
})
