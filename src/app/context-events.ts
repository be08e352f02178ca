import type { Activity } from '../admin/activity.ts'
import type { ContextEvents, EndedTurnFacts, JudgedEngines, TurnOutcome } from '../context/context-events.ts'
import { resultIn } from '../context/response-headers.ts'
import type { KvPresence } from '../kvcache/kv-connector.ts'
import type { KvMissReason } from '../kvcache/reasons.ts'
import { computedTokensOf, type TokenUsage } from '../openai/usage.ts'
import { digestOf } from '../sessions/session-record.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { LabelValue } from '../telemetry/metric-definitions.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Warnings } from '../telemetry/warnings.ts'

type LoadResult = LabelValue<'kv_load_duration_seconds', 'result'>

const missResults: Readonly<Record<KvMissReason, LoadResult>> = {
  nothing_stored: 'empty',
  engine_cache: 'empty',
  no_connector: 'empty',
  fields_ignored: 'empty',
  kv_missing: 'missing',
  kv_incompatible: 'incompatible',
  load_too_slow: 'not_worthwhile',
  engine_reuses_nothing: 'not_reused',
  load_timeout: 'timed_out',
  load_failed: 'failed',
  kv_store_unavailable: 'unavailable',
  no_slot: 'no_room',
  kv_folder_foreign: 'unavailable',
}

const loadResultOf = (presence: KvPresence): LoadResult => {
  if (presence.kind === 'miss') return missResults[presence.reason]
  if (presence.tier !== 'store') return 'resident'
  return presence.loadMs === undefined ? 'on_demand' : 'loaded'
}

/** Records events of the context module as metrics, log lines and warnings. */
export const createContextEvents = (
  metrics: Metrics,
  log: Logger,
  {
    activity,
    ...parts
  }: {
    readonly onStoreFault: ContextEvents['storeFault']
    readonly warnings: Pick<Warnings, 'raise' | 'clear'>
    readonly activity: Activity
  },
): ContextEvents => ({
  requestDecided: (route, outcome) => metrics.add('requests_total', { route, outcome }),
  routed: (policy, pod) => metrics.add('routing_decisions_total', { policy, pod }),
  sessionCreated: (key) => {
    metrics.add('sessions_created_total', {})
    activity.sessionCreated(key)
    log.debug('session created', { session: digestOf(key) })
  },
  sessionDeleted: (key) => {
    metrics.add('sessions_deleted_total', { reason: 'api' })
    activity.sessionDeleted(key)
    log.info('session deleted', { session: digestOf(key) })
  },
  tenantErased: (tenant, erased) => log.info('tenant erased', { tenant, ...erased }),
  sessionsExpired: (count) => metrics.add('sessions_deleted_total', { reason: 'ttl' }, count),
  lookedUp: (result, namedBy = 'id') => {
    metrics.add('lookups_total', { result, named_by: namedBy })
    if (result === 'store_unavailable') metrics.addDegraded('store_unavailable')
  },
  prepared: (presence, milliseconds, pool) => {
    metrics.observe('kv_load_duration_seconds', { pool, result: loadResultOf(presence) }, milliseconds)
    if (presence.kind === 'hit') return
    const { reason, cause } = presence
    switch (reason) {
      case 'load_failed':
        metrics.addDegraded(reason)
        log.warn('KV load failed; the turn computes its KV', { pool, err: cause })
        return
      case 'load_timeout':
        metrics.addDegraded(reason)
        log.warn('KV load timed out; the turn computes its KV', { pool, budgetMs: Math.round(milliseconds) })
        return
      case 'kv_missing':
        metrics.addDegraded(reason)
        log.warn('stored KV is missing or damaged; the turn computes its KV', { pool })
        return
      case 'kv_store_unavailable':
        metrics.addDegraded(reason)
        log.debug('the KV store is unavailable; the turn computes its KV', { err: cause })
        return
      case 'nothing_stored':
      case 'engine_cache':
      case 'no_connector':
      case 'kv_incompatible':
      case 'load_too_slow':
      case 'no_slot':
      case 'kv_folder_foreign':
        return
      case 'engine_reuses_nothing':
        metrics.addDegraded(reason)
        return
    }
  },
  turnEnded: (outcome, usage, turn) => {
    countTurn(metrics, outcome, usage, turn)
    activity.turnEnded(outcome, usage, turn)
    const { session, model: _, prefill: __, ...facts } = turn
    log.debug('turn', { session: session && digestOf(session), outcome, ...facts, ...usage })
  },
  ticketRefused: () => {
    metrics.add('access_log_malformed_total', {})
    log.warn(
      'a turn ended with a ticket that this gateway does not know: of another version, of another tenant.secret, or forged',
    )
  },
  loadBegan: (pod) => activity.loadBegan(pod),
  loadEnded: (pod) => activity.loadEnded(pod),
  hitNotReused: ({ pool, model = 'other', source }) => {
    activity.hitNotReused()
    metrics.add('hits_not_reused_total', { pool, model, source })
  },
  reuseChanged: (engines, isReused) => {
    const { pool, model = 'other', source } = engines
    const subject = `${pool} ${model} ${source}`
    if (isReused) parts.warnings.clear('engine_reuses_nothing', subject)
    else parts.warnings.raise('engine_reuses_nothing', subject, reusesNothing(engines))
  },
  offloaded: (outcome, milliseconds, pool) => {
    const isFault = outcome.kind === 'none' && outcome.cause !== undefined
    metrics.observe('kv_offload_duration_seconds', { pool, result: outcome.kind }, milliseconds)
    if (!isFault) return
    metrics.addDegraded(outcome.reason)
    log.warn('KV could not be stored', { pool, reason: outcome.reason, err: outcome.cause })
  },
  kvUseless: (count) => {
    metrics.add('kv_evictions_total', { reason: 'stale' }, count)
    log.info('stored KV that no pod can load was removed', { artefacts: count })
  },
  removed: (kind, session) => {
    if (kind === 'session') activity.kvRemoved(session)
    log.debug('KV removed', { kind })
  },
  removalPostponed: (reason, attempt) => log.debug('removal postponed', { reason, attempt }),
  removalForeign: (attempt) => {
    if (attempt === 1) log.warn('KV of another connector stays until a gateway runs that connector again')
  },
  storeFault: parts.onStoreFault,
  fault: (where, error) => log.error('unexpected fault', { where, err: error }),
})

const reusesNothing = ({ pool, model, source, pod }: Parameters<ContextEvents['reuseChanged']>[0]): string => {
  const [where, cause] = reuseFaults[source]
  return `The engines of the pool ${pool} reuse nothing of KV ${where}, the last time ${pod} with the model ${model ?? 'other'}, so that x-context-cache calls such turns misses: look for ${cause}, and for clients that change the beginning of their prompts`
}

const reuseFaults = {
  kept: ['that they hold', 'llama-server with a model that has a sliding window or recurrent layers'],
  loaded: [
    'that is loaded into them',
    'llama-server with a model that has a sliding window or recurrent layers, for LMCache servers whose hashes or versions differ',
  ],
} as const satisfies Record<JudgedEngines['source'], readonly [string, string]>

const countTurn = (
  metrics: Metrics,
  outcome: TurnOutcome,
  usage: TokenUsage | undefined,
  { model = 'other', pool, session, cacheStatus, ttfbMs, isStream, prefill }: EndedTurnFacts,
): void => {
  metrics.add('turns_total', { outcome, model })
  const cache = resultIn(cacheStatus)
  if (outcome === 'completed' && isStream === true && ttfbMs !== undefined && cache !== undefined)
    metrics.observe('ttft_seconds', { cache, model }, ttfbMs)
  if (usage === undefined) return
  metrics.add('prompt_tokens_total', { model }, usage.promptTokens)
  metrics.add('cached_tokens_total', { model }, usage.cachedTokens ?? 0)
  metrics.add('output_tokens_total', { model }, usage.outputTokens)
  if (session === undefined) return
  metrics.add('prefill_seconds_total', { pool, result: 'saved' }, (prefill?.savedMs ?? 0) / 1000)
  metrics.add('prefill_seconds_total', { pool, result: 'computed' }, (prefill?.computedMs ?? 0) / 1000)
  metrics.add('session_prompt_tokens_total', { pool, source: 'cached' }, usage.cachedTokens ?? 0)
  metrics.add('session_prompt_tokens_total', { pool, source: 'computed' }, computedTokensOf(usage))
}
