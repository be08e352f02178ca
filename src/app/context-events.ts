import type { ContextEvents } from '../context/context-events.ts'
import type { KvPresence } from '../kvcache/kv-connector.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { LabelValue } from '../telemetry/metric-definitions.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OutageLog } from '../telemetry/outage-log.ts'
import { shortKey } from '../telemetry/redact.ts'

const loadResults: Readonly<Record<KvPresence['kind'], LabelValue<'kv_load_duration_seconds', 'result'>>> = {
  resident: 'resident',
  loaded: 'loaded',
  'on-demand': 'on_demand',
  empty: 'empty',
  missing: 'missing',
  incompatible: 'incompatible',
  'not-worthwhile': 'not_worthwhile',
  'timed-out': 'timed_out',
  failed: 'failed',
  unavailable: 'unavailable',
  'no-room': 'no_room',
}

/** Records events of the context room as metrics and log lines. */
export const createContextEvents = (metrics: Metrics, log: Logger, storeOutage: OutageLog): ContextEvents => ({
  requestDecided: (route, outcome) => metrics.add('requests_total', { route, outcome }),
  routed: (policy, pod) => metrics.add('routing_decisions_total', { policy, pod }),
  sessionCreated: (key) => {
    metrics.add('sessions_created_total', {})
    log.debug('session created', { session: shortKey(key) })
  },
  sessionDeleted: (key) => {
    metrics.add('sessions_deleted_total', { reason: 'api' })
    log.info('session deleted', { session: shortKey(key) })
  },
  sessionsExpired: (count) => metrics.add('sessions_deleted_total', { reason: 'ttl' }, count),
  lookedUp: (result) => {
    metrics.add('lookups_total', { result })
    if (result === 'store_unavailable') metrics.addDegraded('store_unavailable')
  },
  attached: (presence, milliseconds) => {
    metrics.observe('kv_load_duration_seconds', { result: loadResults[presence.kind] }, milliseconds)
    switch (presence.kind) {
      case 'failed':
        metrics.addDegraded('load_failed')
        log.warn('KV load failed; the turn computes its KV', { err: presence.cause })
        return
      case 'timed-out':
        metrics.addDegraded('load_timeout')
        log.warn('KV load timed out; the turn computes its KV', { budgetMs: Math.round(milliseconds) })
        return
      case 'missing':
        metrics.addDegraded('kv_missing')
        log.warn('stored KV is missing or damaged; the turn computes its KV')
        return
      case 'unavailable':
        metrics.addDegraded('kv_store_unavailable')
        log.debug('the KV store is unavailable; the turn computes its KV', { err: presence.cause })
        return
      case 'resident':
      case 'loaded':
      case 'on-demand':
      case 'empty':
      case 'incompatible':
      case 'not-worthwhile':
      case 'no-room':
        return
    }
  },
  turnEnded: (outcome, usage) => {
    metrics.add('turns_total', { outcome })
    if (usage === undefined) return
    metrics.add('prompt_tokens_total', {}, usage.promptTokens)
    metrics.add('cached_tokens_total', {}, usage.cachedTokens)
  },
  offloaded: (outcome, milliseconds) => {
    const isFault = outcome.kind === 'none' && outcome.cause !== undefined
    metrics.observe('kv_offload_duration_seconds', { result: outcome.kind }, milliseconds)
    if (!isFault) return
    metrics.addDegraded(outcome.reason)
    log.warn('KV could not be stored', { reason: outcome.reason, err: outcome.cause })
  },
  kvUseless: (count) => {
    metrics.add('kv_evictions_total', { reason: 'stale' }, count)
    log.info('stored KV that no pod can load was removed', { artefacts: count })
  },
  removed: (kind) => log.debug('KV removed', { kind }),
  removalPostponed: (reason, attempt) => log.debug('removal postponed', { reason, attempt }),
  removalForeign: (attempt) => {
    if (attempt === 1) log.warn('KV of another connector stays until a gateway runs that connector again')
  },
  storeFault: (operation, error) => storeOutage.failed(new Error(`at ${operation}`, { cause: error })),
  fault: (where, error) => log.error('unexpected fault', { where, err: error }),
})
