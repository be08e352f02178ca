import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import type { KvConnector } from '../../../src/kvcache/kv-connector.ts'
import type { KvLog } from '../../../src/kvcache/kv-log.ts'
import { createWarmupConnector } from '../../../src/kvcache/warmup/connector.ts'
import { eventually } from '../../support/eventually.ts'
import {
  type SimulatedFleet,
  type SimulatedPod,
  startSimulatedFleet,
} from '../../support/simulated-fleet/simulated-fleet.ts'
import type { KvTestBed, TestPod } from './kv-test-bed.ts'
import { runOn } from './lmcache-pods.ts'
import { createOpenVault, type OpenVault } from './lmcache-vault.ts'

const bootMaxAgeMs = 1

export interface WarmupBed extends KvTestBed {
  readonly fleet: SimulatedFleet
  readonly vault: OpenVault
  connect(options?: {
    readonly callTimeoutMs?: number
    readonly pods?: readonly string[]
    readonly log?: KvLog
  }): KvConnector
}

/** The warmup connector on simulated engines, without the LMCache servers of their fleet. */
export const startWarmupBed = async ({ isolation }: { readonly isolation: Isolation }): Promise<WarmupBed> => {
  const fleet = await startSimulatedFleet({ events: false })
  const vault = createOpenVault()
  const closing: (() => Promise<void>)[] = []
  const isDown = async (): Promise<void> => {}
  await Promise.all(fleet.pods.map(({ instance }) => instance.server.stop()))
  const viewOf = (pod: SimulatedPod): TestPod => ({
    address: pod.address,
    run: (request) => runOn(fleet, pod, request),
    // A prompt without the salt finds nothing, although its KV is there.
    probe: async (prompt) => (await runOn(fleet, pod, { prompt })).cachedTokens,
    loads: () => pod.engine.warmups(),
    holdLoads: () => pod.engine.warmupGate.hold(),
    restart: async () => {
      const endedMs = performance.now()
      await pod.restart(isDown)
      // A real process takes longer to start than gateways remember its former start.
      await eventually(() => performance.now() - endedMs > 10 * bootMaxAgeMs)
    },
  })
  return {
    fleet,
    vault,
    pods: [viewOf(fleet.pods[0]), viewOf(fleet.pods[1])],
    connect: (wishes = {}) => {
      const connector = createWarmupConnector({
        isolation,
        secret: 'a secret of the tests',
        vault,
        pods: () => wishes.pods ?? fleet.pods.map(({ address }) => address),
        callTimeoutMs: wishes.callTimeoutMs ?? 5_000,
        leaseMs: 60_000,
        vaultTtlMs: 60_000,
        bootMaxAgeMs,
        log: wishes.log ?? { debug: () => {}, info: () => {}, warn: () => {} },
      })
      closing.push(() => connector.close())
      return connector
    },
    artefacts: async () => vault.artefacts(),
    damage: async (artefactId, how) => vault.damage(artefactId, how),
    loseState: () => vault.lose(),
    close: async () => {
      await Promise.all(closing.map((close) => close()))
      await fleet.close()
    },
  }
}
