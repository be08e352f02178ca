import type { ChunkLedger } from '../chunks/chunk-ledger.ts'
import type { ConnectorOptions, ConnectorParts } from '../connector-definition.ts'
import type { KvEvents } from '../kv-events/kv-events.ts'
import type { EngineFactsSource } from './engine-facts.ts'
import type { Instances } from './instances.ts'
import type { LmcacheClient } from './lmcache-client.ts'
import type { StoreBreaker } from './store-breaker.ts'

/** What the connector's operations share. */
export interface Parts
  extends Pick<ConnectorParts, 'identity' | 'log' | 'pods' | 'salts' | 'warnings'>,
    Pick<ConnectorOptions, 'isolation'> {
  readonly lmcache: LmcacheClient
  readonly breaker: StoreBreaker
  readonly instances: Instances
  readonly engines: EngineFactsSource
  readonly events: KvEvents
  /** Shared by all gateway processes that send turns to the same pods. */
  readonly ledger: ChunkLedger
  /** How long LMCache may take for one answer before it counts as not answering, milliseconds. */
  readonly answerMs: number
  /** How long an offload waits for events that do not come, and for chunks when no more come, milliseconds. */
  readonly settleMs: number
  /** Time between a deletion and the look at what is left, milliseconds: reports reach the coordinator late. */
  readonly lookAgainMs: number
}
