import { createEngineHttp, type EngineAccess } from '../../engines/engine-http.ts'
import { createCacheSalts, type Isolation } from '../cache-salts.ts'
import type { ChunkLedger } from '../chunks/chunk-ledger.ts'
import type { KvConnector } from '../kv-connector.ts'
import type { KvEvents } from '../kv-events/kv-events.ts'
import type { KvLog } from '../kv-log.ts'
import type { StoreIdentity } from '../store-identity.ts'
import type { TokenVault } from '../vault/token-vault.ts'
import { createEngineFacts } from './engine-facts.ts'
import { finish } from './finish.ts'
import { createInstances } from './instances.ts'
import { createLmcacheClient, maxAnswerBytes } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { prepare } from './prepare.ts'
import { release, remove } from './remove.ts'
import { createStoreBreaker } from './store-breaker.ts'

export interface LmcacheOptions {
  /** `host:port` of the LMCache coordinator. */
  readonly coordinator: string
  /** The instance id of a pod whose LMCache server has another address than it; undefined: the same address. */
  readonly instanceOf: (pod: string) => string | undefined
  /** Workers that share one model: tensor times pipeline parallel size. */
  readonly worldSize: number
  readonly isolation: Isolation
  /** Salts are derived from it. */
  readonly secret: string
  /** The session store whose KV it is. Each has salts of its own: it never deletes another one's chunks. */
  readonly identity: StoreIdentity
  /** Both shared by all gateway processes that send turns to the same pods. */
  readonly ledger: ChunkLedger
  readonly vault: TokenVault
  readonly events: KvEvents
  /** Whether `events` follows pods that publish events. */
  readonly hasEvents: boolean
  /** `host:port` of every pod that is configured now. No other engine is ever called. */
  readonly pods: () => readonly string[]
  /** How the engines are reached; LMCache is always reached by plain HTTP without a credential. Default: the same. */
  readonly access?: EngineAccess | undefined
  readonly callTimeoutMs: number
  /** Shorter prefixes are not stored. */
  readonly minTokens: number
  /** How long an offload waits for events of the engine that do not come, and for chunks when no more come. Default 2,000. */
  readonly settleMs?: number
  /** Time between a deletion and the look whether anything is left: reports to the coordinator come late. Default 300. */
  readonly lookAgainMs?: number
  /** The longest a session can live. */
  readonly vaultTtlMs: number
  readonly log: KvLog
}

/** It stores, so it has all methods but a sweep. */
export type LmcacheConnector = Omit<Required<KvConnector>, 'sweep' | 'check' | 'constants'>

const callsPerServer = 32

/**
 * KV of vLLM pods that run LMCacheMPConnector, each with an LMCache server, under one coordinator. The engine writes KV through to the store by
 * itself, and loads it by itself; the connector names what came of a turn, keeps it from eviction, says what a pod can load, and deletes it.
 */
export const createLmcacheConnector = (options: LmcacheOptions): LmcacheConnector => {
  const http = createEngineHttp({ callsPerPod: callsPerServer, maxAnswerBytes })
  const engineHttp = createEngineHttp({ callsPerPod: callsPerServer, access: options.access })
  const lmcache = createLmcacheClient({ ...options, http })
  const parts: Parts = {
    settleMs: 2_000,
    lookAgainMs: 300,
    ...options,
    lmcache,
    breaker: createStoreBreaker((signal) => lmcache.healthy(signal), options.log),
    instances: createInstances(lmcache, options.instanceOf),
    engines: createEngineFacts({ ...options, http: engineHttp }),
    salts: createCacheSalts(options.secret),
  }
  return {
    name: 'lmcache',
    prepare: (turn, { signal }) => prepare(parts, turn, signal),
    isolation: (tenant) => ({ cache_salt: parts.salts.withoutSession(tenant, options.isolation) }),
    finish: (turn) => finish(parts, turn),
    release: (turn) => release(parts, turn),
    remove: (removal, signal) => remove(parts, removal, signal),
    close: async () => {
      await options.events.stop()
      await Promise.all([http.close(), engineHttp.close()])
    },
  }
}
