import type { EngineHttp } from '../../engines/engine-http.ts'
import type { CacheSalts, Isolation } from '../cache-salts.ts'
import type { ChunkLedger } from '../chunks/chunk-ledger.ts'
import type { KvPresence } from '../kv-connector.ts'
import type { KvEvents } from '../kv-events/kv-events.ts'
import type { KvLog } from '../kv-log.ts'
import type { SharedLoads } from '../shared-loads.ts'
import type { TokenVault } from '../vault/token-vault.ts'
import type { EngineFactsSource } from './engine-facts.ts'
import type { Instances } from './instances.ts'
import type { LmcacheClient } from './lmcache-client.ts'
import type { StoreBreaker } from './store-breaker.ts'
import type { UnpinKeys } from './unpin-keys.ts'

/** What the connector's operations share. */
export interface Parts {
  readonly http: EngineHttp
  readonly lmcache: LmcacheClient
  readonly breaker: StoreBreaker
  readonly loads: SharedLoads<KvPresence>
  readonly instances: Instances
  readonly engines: EngineFactsSource
  readonly events: KvEvents
  readonly ledger: ChunkLedger
  readonly vault: TokenVault
  readonly salts: CacheSalts
  readonly unpinKeys: UnpinKeys
  readonly isolation: Isolation
  /** Pods that are configured now. No other address is ever called. */
  readonly pods: () => readonly string[]
  readonly log: KvLog
  readonly limits: Limits
}

export interface Limits {
  readonly callTimeoutMs: number
  /** How long a turn may run. */
  readonly leaseMs: number
  readonly minTokens: number
  /** How long an offload waits for events of the engine that do not come, and for chunks when no more come. */
  readonly settleMs: number
  /** Chunks that nobody holds are deleted when they were seen twice, this far apart. */
  readonly orphanGraceMs: number
  /** Time between a deletion and the look whether anything is left: reports to the coordinator come late. */
  readonly lookAgainMs: number
  /** Backstop for what is kept of a session's tokens. */
  readonly vaultTtlMs: number
}
