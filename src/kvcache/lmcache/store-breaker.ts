import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'
import type { KvLog } from '../kv-log.ts'

/** Keeps a KV store that does not answer from costing every turn its deadline. */
export interface StoreBreaker {
  /** Whether the store may be asked. False after several failures in a row, until a probe in the background was answered. */
  isClosed(): boolean
  /** Runs a call and counts how it went. Call it only while the breaker is closed. @throws what the call throws */
  run<T>(call: () => Promise<T>): Promise<T>
  stop(): void
}

/** Thrown and returned as a cause where the store is not asked. */
export class StoreUnavailableFault extends Error {
  override readonly name = 'StoreUnavailableFault'
  override readonly message = 'the KV store did not answer several times in a row and is not asked until it does'
}

export const createStoreBreaker = (options: {
  /** Asks whether the store is there. */
  readonly probe: (signal: AbortSignal) => Promise<void>
  /** Failures in a row that open the breaker. Default 3. */
  readonly failures?: number
  /** Time between two probes of an open breaker, and how long one may take, milliseconds. Default 1,000. */
  readonly probeIntervalMs?: number
  readonly log: KvLog
}): StoreBreaker => {
  const probeIntervalMs = options.probeIntervalMs ?? 1_000
  const policy = circuitBreaker(handleAll, {
    halfOpenAfter: probeIntervalMs,
    breaker: new ConsecutiveBreaker(options.failures ?? 3),
  })
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  // Only a probe meets an open or half-open breaker, never a turn.
  const probeLater = (): void => {
    if (stopped || timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      policy
        .execute(() => options.probe(AbortSignal.timeout(probeIntervalMs)))
        .catch(() => {})
        .finally(() => {
          if (policy.state !== CircuitState.Closed) probeLater()
        })
    }, probeIntervalMs + 10)
    timer.unref()
  }
  policy.onBreak(() => {
    options.log.warn('the KV store does not answer; turns go on without it')
    probeLater()
  })
  policy.onReset(() => options.log.info('the KV store answers again'))

  return {
    isClosed: () => policy.state === CircuitState.Closed,
    run: (call) => policy.execute(call),
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
