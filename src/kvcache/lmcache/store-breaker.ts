import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'
import type { ConnectorParts } from '../connector-definition.ts'

/** Thrown and returned as a cause where the store is not asked. */
export class StoreUnavailableFault extends Error {
  override readonly name = 'StoreUnavailableFault'
  override readonly message = 'the KV store did not answer several times in a row and is not asked until it does'
}

const failures = 3
/** Time between two probes, and how long one may take. */
const probeIntervalMs = 1_000

/** Keeps a KV store that does not answer from costing every turn its deadline. */
export interface StoreBreaker {
  /** Whether to ask the store. False after 3 failures in a row until a probe succeeds; calls start one a second. */
  isClosed(): boolean
  /** Runs a call and counts how it went. Call it only while the breaker is closed. @throws what the call throws */
  run<T>(call: () => Promise<T>): Promise<T>
}

/** `probe` asks the store at `address`. */
export const createStoreBreaker = (
  probe: (signal: AbortSignal) => Promise<unknown>,
  { address, warnings }: { readonly address: string } & Pick<ConnectorParts, 'warnings'>,
): StoreBreaker => {
  const breaker = new ConsecutiveBreaker(failures)
  const policy = circuitBreaker(handleAll, { halfOpenAfter: probeIntervalMs, breaker })
  policy.onBreak((reason) =>
    warnings.raiseOutage('kv_store_unavailable', address, 'error' in reason ? reason.error : undefined),
  )
  policy.onReset(() => warnings.clear('kv_store_unavailable', address))
  return {
    isClosed: () => {
      if (policy.state === CircuitState.Closed) return true
      // One at a time, and none within the interval. No turn waits for it.
      if (policy.state === CircuitState.Open)
        policy.execute(() => probe(AbortSignal.timeout(probeIntervalMs))).catch(() => {})
      return false
    },
    run: <T>(call: () => Promise<T>): Promise<T> => policy.execute(call),
  }
}
