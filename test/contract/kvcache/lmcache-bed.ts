import { createEngineHttp } from '../../../src/engines/engine-http.ts'
import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import type { ConnectorParts, KvLog } from '../../../src/kvcache/connector-definition.ts'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import type { KvConnector } from '../../../src/kvcache/kv-connector.ts'
import { createEventSources } from '../../../src/kvcache/kv-events/event-sources.ts'
import { createKvEvents, type KvEvents } from '../../../src/kvcache/kv-events/kv-events.ts'
import { createLmcacheConnector } from '../../../src/kvcache/lmcache/connector.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { eventually } from '../../support/eventually.ts'
import { chunkKeysOf } from '../../support/simulated-fleet/chunk-keys.ts'
import {
  type SimulatedFleet,
  type SimulatedFleetOptions,
  type SimulatedPod,
  startSimulatedFleet,
} from '../../support/simulated-fleet/simulated-fleet.ts'
import { tokenize } from '../../support/simulated-fleet/tokenizer.ts'
import { inGateway, type KvTestBed, more, newPrompt, type TestPod } from './kv-test-bed.ts'
import { runOn } from './lmcache-pods.ts'
import { createOpenLedger, type OpenLedger } from './open-ledger.ts'

export interface LmcacheBedOptions extends SimulatedFleetOptions {
  /** Default `tenant`. */
  readonly isolation?: Isolation
}

export interface LmcacheConnectOptions {
  /** How long the coordinator has for an answer. Default 3 s. */
  readonly answerMs?: number
  readonly pods?: readonly string[]
  /** Default 20 s: on a busy machine the chunks of a turn take more than a second to arrive. */
  readonly settleMs?: number
  readonly log?: KvLog
  readonly warnings?: ConnectorParts['warnings']
  /** A gateway that starts now: it follows KV events, and learns of the pods later. Default: it receives them all. */
  readonly starts?: boolean
}

/** The lmcache connector on a simulated fleet of its own. */
export interface LmcacheBed extends KvTestBed {
  readonly fleet: SimulatedFleet
  readonly ledger: OpenLedger
  readonly secret: string
  /** The KV events of the first connector. */
  readonly events: KvEvents
  connect(options?: LmcacheConnectOptions): KvCache
}

/** A simulated fleet for many beds, one after the other. Its KV events are followed from bed to bed. */
export interface LmcacheFleet {
  bed(): Promise<LmcacheBed>
  close(): Promise<void>
}

export const startLmcacheFleet = async (options: LmcacheBedOptions = {}): Promise<LmcacheFleet> => {
  const fleet = await startSimulatedFleet(options)
  const followers = createFollowers(fleet)
  return {
    bed: async () => makeBed({ ...options, fleet, followers }),
    close: async () => {
      await followers.stop()
      await fleet.close()
    },
  }
}

/** A bed with a fleet of its own. */
export const startLmcacheBed = async (options: LmcacheBedOptions = {}): Promise<LmcacheBed> => {
  const fleet = await startLmcacheFleet(options)
  const bed = await fleet.bed()
  const close = bed.close.bind(bed)
  return Object.assign(bed, { close: () => close().then(() => fleet.close()) })
}

/** Followers of the KV events: one for each gateway. */
interface Followers {
  of(gateway: number): KvEvents
  /** Resolves when no follower receives the pod's events any more. */
  allMiss(pod: string): Promise<void>
  /** Resolves when all followers receive the events of all pods. */
  allReceive(): Promise<void>
  stop(): Promise<void>
}

const createFollowers = ({ pods }: SimulatedFleet): Followers => {
  const followers: KvEvents[] = []
  const http = createEngineHttp({ callsPerPod: 2 })
  const follow = (): KvEvents =>
    createKvEvents({
      ...connectorParts({ pods: () => pods.map(({ address }) => address) }),
      sources: createEventSources(http),
      pollMs: 50,
      askEveryMs: 50,
    })
  return {
    of: (gateway) => {
      const events = followers[gateway] ?? follow()
      followers[gateway] = events
      return { ...events, stop: async () => {} }
    },
    allMiss: async (pod) => {
      await eventually(() => followers.every((events) => !events.isLive(pod)))
    },
    allReceive: async () => {
      const isReceived = ({ address, engine }: SimulatedPod): boolean =>
        engine.subscribers() === followers.length && followers.every((events) => events.isLive(address))
      await eventually(() => pods.every(isReceived))
    },
    stop: async () => {
      await Promise.all(followers.map((events) => events.stop()))
      await http.close()
    },
  }
}

let beds = 0

const makeBed = (
  options: LmcacheBedOptions & { readonly fleet: SimulatedFleet; readonly followers: Followers },
): LmcacheBed => {
  const { fleet, followers } = options
  const addresses = fleet.pods.map(({ address }) => address)
  beds += 1
  // Salts differ from those of the bed before.
  const secret = `secret number ${beds} of the tests`
  const connectors: ReturnType<typeof createLmcacheConnector>[] = []
  let ledger = createOpenLedger()

  const connect = (wishes: LmcacheConnectOptions = {}): KvCache => {
    // Two gateways are enough to differ.
    const events = wishes.starts ? {} : { events: followers.of(connectors.length % 2) }
    let isStarting = wishes.starts
    const connector = createLmcacheConnector(
      {
        lmcache: {
          url: `http://${fleet.coordinator.address}`,
          instances: fleet.pods.map(({ address, instance }) => `${address}=${instance.id}`),
          worldSize: 1,
        },
        isolation: options.isolation ?? 'tenant',
        callTimeoutMs: 5_000,
        // Longer than all prompts: the engine writes their chunks all the same.
        minTokens: 1_000_000,
      },
      connectorParts({
        secret,
        pods: () => (isStarting ? [] : (wishes.pods ?? addresses)),
        ...(wishes.log && { log: wishes.log }),
        ...(wishes.warnings === undefined ? {} : { warnings: wishes.warnings }),
      }),
      { ledger, ...events, answerMs: wishes.answerMs ?? 3_000, settleMs: wishes.settleMs ?? 20_000, lookAgainMs: 40 },
    )
    connectors.push(connector)
    isStarting = false
    if (wishes.starts) return inGateway(connector, wishes.log)
    const afterEvents: KvConnector = {
      ...connector,
      // A gateway that has just started misses the events before its subscription.
      prepare: async (turn, budget) => {
        await followers.allReceive()
        return connector.prepare(turn, budget)
      },
    }
    return inGateway(afterEvents, wishes.log)
  }

  const viewOf = (pod: SimulatedPod): TestPod => ({
    address: pod.address,
    run: (request) => runOn(fleet, pod, request),
    // Not the engine's memory: nobody outside can empty it. Removals find what the coordinator knows: reports count.
    probe: async (prompt) => {
      const tokens = reachable(fleet, pod, tokenize(prompt))
      await fleet.directory.arrived()
      return tokens
    },
    // The engine loads by itself.
    loads: () => 0,
    holdLoads: () => () => {},
    restart: async () => {
      await pod.restart(() => followers.allMiss(pod.address))
      await followers.allReceive()
    },
  })

  return {
    fleet,
    secret,
    events: followers.of(0),
    get ledger() {
      return ledger
    },
    pods: [viewOf(fleet.pods[0]), viewOf(fleet.pods[1])],
    newPrompt,
    more: more.padEnd(fleet.chunkTokens, ' Please answer it at length.'),
    connect,
    artefacts: async () => ledger.names(),
    damage: async (artefactId) => {
      if (!ledger.names().includes(artefactId)) throw new Error('there is no such artefact')
      for (const key of fleet.store.keys()) fleet.store.damage(key)
    },
    loseState: () => {
      ledger = createOpenLedger()
    },
    close: async () => {
      await Promise.all(connectors.map((connector) => connector.close()))
      fleet.onCall(() => undefined)
      fleet.empty()
    },
  }
}

/** Leading tokens that the pod's LMCache server could load into its engine, under any salt. */
const reachable = (fleet: SimulatedFleet, { instance }: SimulatedPod, tokens: readonly number[]): number => {
  const salts = new Set([...fleet.store.keys(), ...instance.memory.keys()].map((key) => key.cache_salt))
  const lengths = [...salts].map((salt) => {
    const address = { model_name: fleet.modelRoot, cache_salt: salt, token_ids: tokens }
    const keys = chunkKeysOf(address, fleet.chunkTokens)
    const missing = keys.findIndex((key) => !fleet.store.has(key) && !instance.memory.has(key))
    return (missing === -1 ? keys.length : missing) * fleet.chunkTokens
  })
  return Math.max(0, ...lengths)
}
