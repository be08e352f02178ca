/**
 * The values a label may take. A list is closed: every other value counts as `other`. A text says in words which set of the gateway's own bounds
 * the label. The labels `pod` and `model` are bounded by what is there now: series of a removed pod or model are removed.
 */
export type LabelRange = readonly string[] | string

/** One metric, without the common prefix. */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** One sentence: the HELP text, and the line in docs/metrics.md. */
  readonly help: string
  readonly labels: Readonly<Record<string, LabelRange>>
  /** Upper bounds of a histogram's buckets, in the unit of its name. */
  readonly buckets?: readonly number[]
  /** How the values of several gateways become one: `max` where each exports the whole. Default: `sum`. */
  readonly gateways?: 'sum' | 'max'
}

/** Prefix of the names of all metrics in {@link metricDefinitions}. */
export const metricPrefix = 'context_cache_'

const loadSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const storeSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const messageSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const waitSeconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const ttftSeconds = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

const pools = 'pools of the configuration'
const pods = 'current pods'
const models = 'models that engines list, `other`'

/** Every metric of the gateway's own. docs/metrics.md lists them; a test compares the two. */
export const metricDefinitions = {
  requests_total: {
    type: 'counter',
    help: 'Requests that reached the gateway, by route and outcome.',
    labels: {
      route: ['create', 'completions', 'chat_completions', 'responses', 'get', 'list', 'update', 'delete', 'other'],
      outcome: ['forwarded', 'answered', 'passed', 'rejected', 'failed', 'abandoned'],
    },
  },
  lookups_total: {
    type: 'counter',
    help: 'Session lookups of turns, by result.',
    labels: { result: ['active', 'expired', 'deleted', 'unknown', 'store_unavailable'] },
  },
  sessions_active: {
    type: 'gauge',
    help: 'Sessions in the store.',
    labels: {},
    gateways: 'max',
  },
  sessions_created_total: { type: 'counter', help: 'Created sessions.', labels: {} },
  sessions_deleted_total: {
    type: 'counter',
    help: 'Ended sessions, by reason: expired, deleted by request, or evicted from the memory store by count or by memory.',
    labels: { reason: ['ttl', 'api', 'count', 'memory'] },
  },
  sessions_bytes: {
    type: 'gauge',
    help: 'Estimated memory of the sessions and tombstones in the memory store, bytes.',
    labels: {},
  },
  kv_stored_bytes: {
    type: 'gauge',
    help: 'Stored KV of sessions, bytes; with Redis only where kv.maxStoreBytes is set.',
    labels: {},
    gateways: 'max',
  },
  kv_evictions_total: {
    type: 'counter',
    help: 'Stored KV removed from sessions that live, by reason: store size limit, or no pod can load it.',
    labels: { reason: ['size', 'stale'] },
  },
  turns_total: {
    type: 'counter',
    help: 'Ended turns by outcome and model.',
    labels: {
      outcome: ['completed', 'gone', 'engine_error', 'upstream_failed', 'client_left', 'incomplete'],
      model: models,
    },
  },
  ttft_seconds: {
    type: 'histogram',
    help: 'Time from the end of the request to the first byte of the response body, of completed turns with a streamed response, by what x-context-cache said.',
    labels: { cache: ['hit', 'miss', 'none'], model: models },
    buckets: ttftSeconds,
  },
  prompt_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens of ended turns, from the usage of their answers.',
    labels: { model: models },
  },
  cached_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens of ended turns that the engine read from its cache, from the usage of their answers.',
    labels: { model: models },
  },
  output_tokens_total: {
    type: 'counter',
    help: 'Output tokens of ended turns, from the usage of their answers.',
    labels: { model: models },
  },
  pods: {
    type: 'gauge',
    help: 'Pods of each pool, by whether they get turns.',
    labels: { pool: pools, state: ['ready', 'not_ready'] },
    gateways: 'max',
  },
  turns_in_flight: {
    type: 'gauge',
    help: 'Turns of this process that were forwarded and have not ended, by pool. A turn whose end Envoy reported to another gateway counts until its lease ends.',
    labels: { pool: pools },
  },
  pod_ready: {
    type: 'gauge',
    help: '1 while the pod gets turns, else 0.',
    labels: { pool: pools, pod: pods },
    gateways: 'max',
  },
  pod_turns_in_flight: {
    type: 'gauge',
    help: 'Turns of this process that were forwarded to the pod and have not ended. A turn whose end Envoy reported to another gateway counts until its lease ends.',
    labels: { pool: pools, pod: pods },
  },
  pod_sessions: {
    type: 'gauge',
    help: 'Sessions whose KV the pod probably holds, of the last 100,000 that this process routed in the pool. A session that several gateways routed counts at each.',
    labels: { pool: pools, pod: pods },
  },
  kv_load_duration_seconds: {
    type: 'histogram',
    help: 'Time to find the KV of a session in the chosen pod or to load it there, by pool and result.',
    labels: {
      pool: pools,
      result: [
        'resident',
        'loaded',
        'on_demand',
        'empty',
        'not_worthwhile',
        'missing',
        'incompatible',
        'timed_out',
        'failed',
        'unavailable',
        'no_room',
      ],
    },
    buckets: loadSeconds,
  },
  kv_offload_duration_seconds: {
    type: 'histogram',
    help: 'Time to store the KV of a turn, by pool and result.',
    labels: { pool: pools, result: ['stored', 'unchanged', 'none'] },
    buckets: loadSeconds,
  },
  removals_pending: {
    type: 'gauge',
    help: 'KV removals that are not done. Should return to zero.',
    labels: {},
    gateways: 'max',
  },
  degraded_total: {
    type: 'counter',
    help: 'Turns that continued without a part of the cache because it failed, by reason.',
    labels: {
      reason: [
        'store_unavailable',
        'load_failed',
        'load_timeout',
        'kv_missing',
        'kv_store_unavailable',
        'offload_failed',
      ],
    },
  },
  warnings: {
    type: 'gauge',
    help: 'Findings that an operator has to settle, and dependencies that are unavailable, by kind; /readyz lists them, and none stops turns.',
    labels: {
      kind: [
        'store_unavailable',
        'engine_unavailable',
        'kv_store_unavailable',
        'kv_folder_unavailable',
        'kv_events_unavailable',
        'kv_folder_foreign',
        'engine_unauthorized',
        'engine_shares_kv',
        'engine_saves_nothing',
        'kubernetes_list_stale',
      ],
    },
    gateways: 'max',
  },
  store_duration_seconds: {
    type: 'histogram',
    help: 'Duration of operations of the session store.',
    labels: { op: 'methods of the session store' },
    buckets: storeSeconds,
  },
  store_errors_total: {
    type: 'counter',
    help: 'Failed operations of the session store.',
    labels: { op: 'methods of the session store' },
  },
  store_circuit_open: {
    type: 'gauge',
    help: '1 while the circuit breaker of the session store is open, else 0.',
    labels: {},
    gateways: 'max',
  },
  corrupted_records_total: {
    type: 'counter',
    help: 'Unreadable records in the session store; they count as missing.',
    labels: {},
  },
  routing_decisions_total: {
    type: 'counter',
    help: 'Turns by chosen pod and routing policy.',
    labels: { policy: 'routing policies', pod: pods },
  },
  response_cache_lookups_total: {
    type: 'counter',
    help: 'Lookups in the response cache, by result.',
    labels: { result: ['hit', 'miss'] },
  },
  response_cache_evictions_total: {
    type: 'counter',
    help: 'Answers evicted from the response cache.',
    labels: {},
  },
  response_cache_entries: { type: 'gauge', help: 'Answers in the response cache.', labels: {} },
  response_cache_bytes: {
    type: 'gauge',
    help: 'Memory of the response cache, answers and their requests, bytes.',
    labels: {},
  },
  admission_waiting: {
    type: 'gauge',
    help: 'Turns and KV loads that wait for resources.',
    labels: {},
  },
  admission_wait_seconds: {
    type: 'histogram',
    help: 'Time that turns and KV loads with requirements waited for resources, including those that did not wait, by outcome.',
    labels: { kind: ['prefill', 'load'], outcome: ['admitted', 'refused', 'left'] },
    buckets: waitSeconds,
  },
  admission_refused_total: {
    type: 'counter',
    help: 'Turns answered with 429 and KV loads skipped, by reason: too many waiting, or the wait timed out.',
    labels: { kind: ['prefill', 'load'], reason: ['full', 'timeout'] },
  },
  admission_leases_expired_total: {
    type: 'counter',
    help: 'Turns whose resources were released by lease because no end of turn was reported. Should stay at zero.',
    labels: { kind: ['prefill', 'load'] },
  },
  admission_resource_in_use: {
    type: 'gauge',
    help: 'Copies of a resource in use, by pod; the pod of a global resource is `global`.',
    labels: { resource: 'resources of the configuration', pod: 'current pods, `global`' },
  },
  admission_resource_capacity: {
    type: 'gauge',
    help: 'Copies of a resource, by pod; the pod of a global resource is `global`.',
    labels: { resource: 'resources of the configuration', pod: 'current pods, `global`' },
  },
  ext_proc_streams_active: {
    type: 'gauge',
    help: 'Open ext_proc streams and undecided turns. The stream of a create is open until its response ends.',
    labels: {},
  },
  ext_proc_message_duration_seconds: {
    type: 'histogram',
    help: 'Time from a message of Envoy to its reply, including KV loads.',
    labels: {
      phase: [
        'request_headers',
        'request_body',
        'request_trailers',
        'response_headers',
        'response_body',
        'response_trailers',
      ],
    },
    buckets: messageSeconds,
  },
  access_log_malformed_total: {
    type: 'counter',
    help: 'Unreadable entries of Envoy’s access log; the end of each such turn is lost.',
    labels: {},
  },
  build_info: {
    type: 'gauge',
    help: 'Always 1; the labels are the versions of gateway and Node.js.',
    labels: { version: 'of the gateway', node_version: 'of Node.js' },
    gateways: 'max',
  },
} as const satisfies Record<string, MetricDefinition>

type Definitions = typeof metricDefinitions

/** Names of the metrics of a type, without the prefix. */
export type MetricNameOf<Type extends MetricDefinition['type']> = {
  [Name in keyof Definitions]: Definitions[Name]['type'] extends Type ? Name : never
}[keyof Definitions]

/** A value of a metric's label: one of its closed list, else any text. */
export type LabelValue<
  Name extends keyof Definitions,
  Label extends keyof Definitions[Name]['labels'],
> = Definitions[Name]['labels'][Label] extends readonly (infer Value extends string)[] ? Value : string

/** The labels of a metric. */
export type LabelsOf<Name extends keyof Definitions> = {
  readonly [Label in keyof Definitions[Name]['labels']]: LabelValue<Name, Label>
}
