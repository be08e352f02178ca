import { createEngineHttp, type EngineHttp } from '../../../../src/engines/engine-http.ts'
import type { ChunkLedger } from '../../../../src/kvcache/chunks/chunk-ledger.ts'
import type { KvEvents } from '../../../../src/kvcache/kv-events/kv-events.ts'
import { createEngineFacts } from '../../../../src/kvcache/lmcache/engine-facts.ts'
import { createInstances } from '../../../../src/kvcache/lmcache/instances.ts'
import { createLmcacheClient } from '../../../../src/kvcache/lmcache/lmcache-client.ts'
import type { Parts } from '../../../../src/kvcache/lmcache/parts.ts'
import { createStoreBreaker } from '../../../../src/kvcache/lmcache/store-breaker.ts'
import type { LmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { connectorParts } from '../../../support/connector-parts.ts'

/** One call of whatever the connector calls fails: before it does anything, or after it is done. */
export interface Interruption {
  readonly at: number
  readonly how: 'before' | 'after'
}

/** A gateway's parts on a bed, of which one call fails. */
export interface InterruptibleParts extends Parts {
  /** Calls so far. */
  readonly calls: () => number
  readonly close: () => Promise<void>
}

export const interruptibleParts = (
  { bed, events }: { readonly bed: LmcacheBed; readonly events: KvEvents },
  interruption?: Interruption,
): InterruptibleParts => {
  let calls = 0
  const lost = new Error('interrupted')
  const interrupt = async <T>(call: () => Promise<T>): Promise<T> => {
    calls += 1
    if (calls !== interruption?.at) return call()
    if (interruption.how === 'after') await call()
    throw lost
  }
  const real = createEngineHttp({ callsPerPod: 8 })
  const http: EngineHttp = {
    call: (call) => interrupt(() => real.call(call)).catch((cause: unknown) => ({ kind: 'broken', cause })),
    close: () => real.close(),
  }
  const lmcache = createLmcacheClient({ http, coordinator: bed.fleet.coordinator.address, worldSize: 1 })
  const breaker = createStoreBreaker((signal) => lmcache.healthy(signal), { address: 'lmcache:1', ...connectorParts() })
  return {
    ...connectorParts({ secret: bed.secret, pods: () => bed.fleet.pods.map(({ address }) => address) }),
    calls: () => calls,
    close: () => real.close(),
    lmcache,
    breaker,
    instances: createInstances(lmcache, (at) => bed.fleet.pods.find(({ address }) => address === at)?.instance.id),
    engines: createEngineFacts(http, 5_000),
    events,
    ledger: interruptedLedger(bed.ledger, interrupt),
    isolation: 'tenant',
    answerMs: 1_000,
    settleMs: 1_000,
    lookAgainMs: 40,
  }
}

type Interrupt = <T>(call: () => Promise<T>) => Promise<T>

const interruptedLedger = (ledger: ChunkLedger, interrupt: Interrupt): ChunkLedger => ({
  hold: (artefact) => interrupt(() => ledger.hold(artefact)),
  release: (artefact) => interrupt(() => ledger.release(artefact)),
})
