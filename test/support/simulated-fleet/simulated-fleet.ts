import { keyText } from './chunk-keys.ts'
import { type ChunkStore, createChunkStore } from './chunk-store.ts'
import { startCoordinator } from './coordinator.ts'
import { createDirectory, type Directory } from './directory.ts'
import { type Engine, startEngine } from './engine.ts'
import { type LmcacheInstance, startLmcacheInstance } from './lmcache-instance.ts'
import type { SimCall, SimFault, SimServer } from './sim-server.ts'

export interface SimulatedFleetOptions {
  /** Default 2. */
  readonly pods?: number
  /** Whether engines publish KV events. Default true. */
  readonly events?: boolean
  /** Each pod's engine version. Default: the same for all. */
  readonly versions?: readonly string[]
}

/** Tokens of an engine's block, and of a chunk. */
const [blockTokens, chunkTokens] = [16, 64]
/** How long a write to the store takes. */
const writeMs = 2

export interface SimulatedPod {
  readonly address: string
  readonly engine: Engine
  readonly instance: LmcacheInstance
  /** Both processes of the pod end, and begin anew when those who follow its events have noticed. */
  restart(untilNoticed: () => Promise<void>): Promise<void>
}

/**
 * vLLM pods, each with an LMCache server, one store behind them and one coordinator, as far as they can be told apart
 * from outside: over HTTP, by KV events over ZeroMQ, and by what lies where. Nothing takes time but what is told to.
 */
export interface SimulatedFleet {
  readonly modelName: string
  readonly modelRoot: string
  readonly chunkTokens: number
  readonly pods: readonly [SimulatedPod, SimulatedPod]
  readonly coordinator: SimServer
  readonly directory: Directory
  /** The store that all pods share. */
  readonly store: ChunkStore
  /** Every call that any server received. */
  readonly calls: readonly SimCall[]
  /** Decides what goes wrong with calls from now on. */
  onCall(decide: (call: SimCall) => SimFault | undefined): void
  /** Instances that are listed here have not registered with the coordinator. */
  readonly absent: Set<string>
  /** Names of all chunks under these salts, wherever they lie; of all salts by default. */
  chunks(salt?: string): readonly string[]
  /** Takes every chunk out of the store and the memory beside engines, and has the coordinator forget everything. */
  empty(): void
  close(): Promise<void>
}

export const startSimulatedFleet = async (options: SimulatedFleetOptions = {}): Promise<SimulatedFleet> => {
  const { events = true } = options
  const [modelName, modelRoot] = ['tiny', '/models/tiny']
  const calls: SimCall[] = []
  const absent = new Set<string>()
  let decide: (call: SimCall) => SimFault | undefined = () => undefined
  const intercept = (call: SimCall): SimFault | undefined => {
    calls.push(call)
    return decide(call)
  }
  const store = createChunkStore()
  const directory = createDirectory({ lagMs: 2, chunkBytes: chunkTokens * bytesPerToken })

  const startPod = async (number: number): Promise<SimulatedPod> => {
    const shared = { chunkTokens, intercept }
    const instance = await startLmcacheInstance({ ...shared, id: `instance-${number}`, writeMs, store, directory })
    const engine = await startEngine({
      ...shared,
      name: `engine-${number}`,
      modelName,
      modelRoot,
      blockTokens,
      version: options.versions?.[number] ?? '0.32.0',
      publishes: events,
      instance,
    })
    const restart = async (untilNoticed: () => Promise<void>): Promise<void> => {
      instance.restart()
      await engine.restart(untilNoticed)
    }
    return { address: engine.server.address, engine, instance, restart }
  }

  const pods: SimulatedPod[] = []
  for (let number = 0; number < (options.pods ?? 2); number += 1) pods.push(await startPod(number))
  const [first, second = first] = pods
  if (first === undefined || second === undefined) throw new Error('a fleet has at least one pod')
  const instances = pods.map(({ instance }) => instance)
  const coordinator = await startCoordinator({ instances, absent, directory, chunkTokens, intercept })
  return {
    modelName,
    modelRoot,
    chunkTokens,
    pods: [first, second],
    coordinator,
    directory,
    store,
    calls,
    onCall: (next) => {
      decide = next
    },
    absent,
    chunks: (salt) => {
      const all = [store, ...instances.map(({ memory }) => memory)].flatMap((place) => place.keys())
      return [...new Set(all.filter((key) => salt === undefined || key.cache_salt === salt).map(keyText))]
    },
    empty: () => {
      for (const place of [store, ...instances.map(({ memory }) => memory)]) place.clear()
      directory.forget()
    },
    close: async () => {
      await coordinator.stop()
      for (const { engine, instance } of pods) {
        await engine.close()
        await instance.server.stop()
      }
    },
  }
}

const bytesPerToken = 512
