import { createCostModel } from '../../src/routing/cost-model.ts'
import { InFlightTurns } from '../../src/routing/in-flight-turns.ts'
import type { PodAddress, RandomSource } from '../../src/routing/pod.ts'
import { createPolicies, type PolicyName } from '../../src/routing/policies.ts'
import { createRouter } from '../../src/routing/router.ts'
import { createTtftPredictor } from '../../src/routing/ttft-predictor.ts'
import { bytesPerToken, type FleetSettings, loadOverheadMs } from './fleet-settings.ts'

/** The model that all requests of a replay name. */
export const modelName = 'model'

/** As a gateway's own defaults have it. */
export const maxLoadMs = 30_000
export const turnLeaseMs = 660_000
const stickiness = { factor: 2, margin: 4 } as const
const maxSessions = 100_000

/** Fields of an engine's metrics that routing reads. */
export interface EngineReading {
  readonly running: number
  readonly waiting: number
  readonly kvUsage: number
}

const idle = { running: 0, waiting: 0, kvUsage: 0, inFlightAtRead: 0 } as const

/**
 * The parts of a gateway that serve traffic, on virtual time: the router with its policies, the counts of turns in
 * flight, the predictor with its backlogs and its guess at what lies where, the cost model.
 */
export const createGatewayParts = (options: {
  readonly settings: FleetSettings
  readonly policy: PolicyName
  readonly nowMs: () => number
  readonly random: RandomSource
}) => {
  const { settings, nowMs, random } = options
  const addresses: readonly PodAddress[] = Array.from({ length: settings.pods }, (_none, index) => `pod-${index}:8000`)
  const indexOf: ReadonlyMap<PodAddress, number> = new Map(addresses.map((address, index) => [address, index]))
  const costs = createCostModel({
    initialMsPerToken: 1000 / settings.prefillTokensPerSecond,
    initialMsPerByte: 1000 / settings.loadTokensPerSecond / bytesPerToken,
    initialLoadMs: loadOverheadMs,
  })
  const inFlight = addresses.map(() => new InFlightTurns({ turnLeaseMs, nowMs }))
  let readings: readonly (EngineReading & { readonly inFlightAtRead: number })[] = addresses.map(() => idle)
  const turnsAt = (pod: PodAddress): InFlightTurns | undefined => inFlight[indexOf.get(pod) ?? -1]
  const source = {
    pods: () =>
      addresses.map((address, index) => ({
        address,
        ready: true,
        inFlight: inFlight[index]?.count() ?? 0,
        ...(readings[index] ?? idle),
      })),
  }
  const predictor = createTtftPredictor({ source, costs, nowMs, maxSessions, turnLeaseMs })
  const router = createRouter({
    source: predictor,
    stickiness,
    policies: createPolicies({ defaultPolicy: options.policy, stickiness, random, costs }),
  })
  return {
    addresses,
    /** The place of a pod in the fleet. */
    indexOf,
    costs,
    predictor,
    router,
    turnStarted: (pod: PodAddress, turnId: string): void => turnsAt(pod)?.started(turnId),
    turnEnded: (pod: PodAddress, turnId: string): void => turnsAt(pod)?.ended(turnId),
    readMetrics: (engines: readonly EngineReading[]): void => {
      readings = engines.map((engine, index) => ({ ...engine, inFlightAtRead: inFlight[index]?.count() ?? 0 }))
    },
  }
}
