import type { ContextEvents } from '../context/context-events.ts'
import type { KvPresence } from '../kvcache/kv-connector.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { KvLoadResult, Metrics } from '../telemetry/metrics.ts'
import type { OutageLog } from '../telemetry/outage-log.ts'
import { shortKey } from '../telemetry/redact.ts'

const loadResults: Readonly<Record<KvPresence['kind'], KvLoadResult>> = {
  resident: 'resident',
  loaded: 'loaded',
  'on-demand': 'on_demand',
  empty: 'empty',
  missing: 'missing',
  'not-worthwhile': 'not_worthwhile',
  'timed-out': 'timed_out',
  failed: 'failed',
  unavailable: 'unavailable',
  'no-room': 'no_room',
}

/** Records events of the context room as metrics and log lines. */
export const createContextEvents = (metrics: Metrics, log: Logger, storeOutage: OutageLog): ContextEvents => ({
  requestDecided: (route, outcome) => metrics.requestDecided({ route, outcome }),
  routed: (policy, pod) => metrics.routed({ policy, pod }),
  sessionCreated: (key) => {
    metrics.sessionCreated()
    log.debug('session created', { session: shortKey(key) })
  },
  sessionDeleted: (key) => {
    metrics.sessionsDeleted({ reason: 'api', count: 1 })
    log.info('session deleted', { session: shortKey(key) })
  },
  sessionsExpired: (count) => metrics.sessionsDeleted({ reason: 'ttl', count }),
  lookedUp: (result) => {
    metrics.lookedUp(result)
    if (result === 'store_unavailable') metrics.degraded('store_unavailable')
  },
  attached: (presence, milliseconds) => {
    metrics.kvLoadEnded({ result: loadResults[presence.kind], durationMs: milliseconds })
    switch (presence.kind) {
      case 'failed':
        metrics.degraded('load_failed')
        log.warn('KV load failed; the turn computes its KV', { err: presence.cause })
        return
      case 'timed-out':
        metrics.degraded('load_timeout')
        log.warn('KV load timed out; the turn computes its KV', { budgetMs: Math.round(milliseconds) })
        return
      case 'missing':
        metrics.degraded('kv_missing')
        log.warn('stored KV is missing or damaged; the turn computes its KV')
        return
      case 'unavailable':
        metrics.degraded('kv_store_unavailable')
        log.debug('the KV store is unavailable; the turn computes its KV', { err: presence.cause })
        return
      case 'resident':
      case 'loaded':
      case 'on-demand':
      case 'empty':
      case 'not-worthwhile':
      case 'no-room':
        return
    }
  },
  turnEnded: (outcome, usage) => {
    metrics.turnEnded(outcome)
    if (usage !== undefined) metrics.tokensUsed(usage)
  },
  offloaded: (outcome, milliseconds) => {
    const isFault = outcome.kind === 'none' && outcome.cause !== undefined
    metrics.kvOffloadEnded({ result: outcome.kind, durationMs: milliseconds })
    if (!isFault) return
    metrics.degraded(outcome.reason)
    log.warn('KV could not be stored', { reason: outcome.reason, err: outcome.cause })
  },
  kvUseless: (count) => {
    metrics.kvEvicted({ reason: 'stale', count })
    log.info('stored KV that no pod can load was removed', { artefacts: count })
  },
  removed: (kind) => log.debug('KV removed', { kind }),
  removalPostponed: (reason, attempt) => log.debug('removal postponed', { reason, attempt }),
  storeFault: (operation, error) => storeOutage.failed(new Error(`at ${operation}`, { cause: error })),
  fault: (where, error) => log.error('unexpected fault', { where, err: error }),
})
