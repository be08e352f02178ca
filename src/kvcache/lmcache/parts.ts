import type { CacheSalts } from '../cache-salts.ts'
import type { LmcacheOptions } from './connector.ts'
import type { EngineFactsSource } from './engine-facts.ts'
import type { Instances } from './instances.ts'
import type { LmcacheClient } from './lmcache-client.ts'
import type { StoreBreaker } from './store-breaker.ts'

/** What the connector's operations share. */
export interface Parts
  extends Pick<LmcacheOptions, 'events' | 'identity' | 'isolation' | 'ledger' | 'log' | 'minTokens' | 'pods'>,
    Required<Pick<LmcacheOptions, 'lookAgainMs' | 'settleMs' | 'vault' | 'vaultTtlMs'>> {
  readonly lmcache: LmcacheClient
  readonly breaker: StoreBreaker
  readonly instances: Instances
  readonly engines: EngineFactsSource
  readonly salts: CacheSalts
}
