/**
 * The values a label may take. A list is closed: any other value counts as `other`. A text says which set of the
 * gateway's own bounds it. `pod` and `model` are bounded by what is there now: series of removed ones are removed.
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
const perPod = { pool: pools, pod: pods } as const
const perModel = { model: models } as const
const perResource = { resource: 'resources of the configuration', pod: 'current pods, `global`' } as const

type Labels = MetricDefinition['labels']

const counter = <const L extends Labels>(help: string, labels: L) => ({ type: 'counter', help, labels }) as const
const gauge = <const L extends Labels>(help: string, labels: L) => ({ type: 'gauge', help, labels }) as const
/** Each gateway exports the whole. */
const sharedGauge = <const L extends Labels>(help: string, labels: L) =>
  ({ ...gauge(help, labels), gateways: 'max' }) as const
const histogram = <const L extends Labels>(help: string, buckets: readonly number[], labels: L) =>
  ({ type: 'histogram', help, buckets, labels }) as const

/** Every metric of the gateway's own. docs/metrics.md lists them; a test compares the two. */
export const metricDefinitions = {
  requests_total: counter('Requests that the gateway decided on, by route and outcome.', {
    route: [
      'create',
      'completions',
      'chat_completions',
      'responses',
      'messages',
      'get',
      'list',
      'fork',
      'update',
      'delete',
      'history',
      'other',
    ],
    outcome: ['forwarded', 'answered', 'passed', 'rejected', 'failed', 'abandoned'],
  }),
  lookups_total: counter(
    'Session lookups of turns, by result and by what names the session; creates that go on without a session count, too.',
    {
      result: ['active', 'created', 'expired', 'deleted', 'unknown', 'limited', 'store_unavailable'],
      named_by: '`id`, kinds of `sessions.implicit.names`',
    },
  ),
  sessions_active: sharedGauge('Sessions in the store.', {}),
  sessions_created_total: counter('Created sessions.', {}),
  sessions_deleted_total: counter(
    'Ended sessions, by reason: expired, deleted by request, or evicted from the memory store by count or by memory.',
    { reason: ['ttl', 'api', 'count', 'memory'] },
  ),
  sessions_bytes: gauge('Estimated memory of sessions and tombstones in the memory store, bytes; 0 with Redis.', {}),
  kv_stored_bytes: sharedGauge('Stored KV of sessions, bytes; with Redis 0 unless kv.maxStoreBytes is set.', {}),
  kv_evictions_total: counter(
    'Stored KV removed from sessions that live, by reason: store size limit, or no pod can load it.',
    { reason: ['size', 'stale'] },
  ),
  turns_total: counter('Ended turns by outcome and model.', {
    outcome: ['completed', 'gone', 'engine_error', 'upstream_failed', 'client_left', 'incomplete'],
    model: models,
  }),
  ttft_seconds: histogram(
    'Time from the end of the request to the first byte of the response body, of completed turns with a streamed response, by what x-context-cache said.',
    ttftSeconds,
    { cache: ['hit', 'miss', 'none'], model: models },
  ),
  prompt_tokens_total: counter('Prompt tokens of ended turns, from the usage of their answers.', perModel),
  cached_tokens_total: counter(
    'Prompt tokens of ended turns that the engine read from its cache, from the usage of their answers.',
    perModel,
  ),
  session_prompt_tokens_total: counter(
    'Prompt tokens of ended turns of sessions, from usage, by pool: those that the engine reused, and those that it computed.',
    { pool: pools, source: ['cached', 'computed'] },
  ),
  prefill_seconds_total: counter(
    'Prefill of ended turns with a session, by pool: time that reused KV saved, and time computed, by learnt costs.',
    { pool: 'pools of the configuration', result: ['saved', 'computed'] },
  ),
  output_tokens_total: counter('Output tokens of ended turns, from the usage of their answers.', perModel),
  pods: sharedGauge('Pods of each pool, by whether they get turns.', { pool: pools, state: ['ready', 'not_ready'] }),
  turns_in_flight: gauge('Turns of this process that were forwarded and have not ended, by pool.', { pool: pools }),
  pod_ready: sharedGauge('1 while the pod gets turns, else 0.', perPod),
  pod_turns_in_flight: gauge('Turns of this process that were forwarded to the pod and have not ended.', perPod),
  pod_sessions: gauge(
    'Sessions whose KV the pod probably holds, of the last 100,000 that this process routed in the pool. A session that several gateways routed counts at each.',
    perPod,
  ),
  kv_load_duration_seconds: histogram(
    'Time to find the KV of a session in the chosen pod or to load it there, by pool and result.',
    loadSeconds,
    {
      pool: pools,
      result: [
        'resident',
        'loaded',
        'on_demand',
        'empty',
        'not_worthwhile',
        'not_reused',
        'missing',
        'incompatible',
        'timed_out',
        'failed',
        'unavailable',
        'no_room',
      ],
    },
  ),
  kv_offload_duration_seconds: histogram('Time to store the KV of a turn, by pool and result.', loadSeconds, {
    pool: pools,
    result: ['stored', 'unchanged', 'none'],
  }),
  removals_pending: sharedGauge('KV removals that are not done. Should return to zero.', {}),
  degraded_total: counter('Turns that continued without a part of the cache because it failed, by reason.', {
    reason: [
      'store_unavailable',
      'load_failed',
      'load_timeout',
      'kv_missing',
      'kv_store_unavailable',
      'engine_reuses_nothing',
      'offload_failed',
    ],
  }),
  hits_not_reused_total: counter(
    'Turns that computed a prompt again although their pod held its KV (`kept`) or it was loaded there (`loaded`), by usage.',
    { pool: pools, model: models, source: ['kept', 'loaded'] },
  ),
  warnings: sharedGauge(
    'Findings that an operator has to settle, and dependencies that are unavailable, by kind; /readyz lists them, and none stops turns.',
    {
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
        'engine_reuses_nothing',
        'kubernetes_list_stale',
      ],
    },
  ),
  store_duration_seconds: histogram('Duration of operations of the session store.', storeSeconds, {
    op: 'methods of the session store',
  }),
  store_errors_total: counter('Failed operations of the session store.', { op: 'methods of the session store' }),
  store_circuit_open: sharedGauge('1 while the circuit breaker of the session store is open, else 0.', {}),
  config_reloads_total: counter('Configurations that were loaded while the gateway ran and differed, by result.', {
    result: ['applied', 'refused', 'invalid'],
  }),
  corrupted_records_total: counter('Unreadable records in the session store; they count as missing.', {}),
  routing_decisions_total: counter('Turns by chosen pod and routing policy.', {
    policy: 'routing policies',
    pod: pods,
  }),
  response_cache_lookups_total: counter('Lookups in the response cache, by result.', { result: ['hit', 'miss'] }),
  response_cache_evictions_total: counter('Answers evicted from the response cache.', {}),
  response_cache_entries: gauge('Answers in the response cache.', {}),
  response_cache_bytes: gauge('Memory of the response cache, answers and their requests, bytes.', {}),
  kept_responses_total: counter(
    'Answers of /v1/responses that were to be kept, by outcome. `no_answer`: the answer is an error, did not complete, or cannot be read.',
    {
      outcome: [
        'stored',
        'item_bytes',
        'conversation_bytes',
        'tenant_bytes',
        'no_memory',
        'no_answer',
        'unreadable',
        'gone',
        'exists',
        'unavailable',
      ],
    },
  ),
  admission_waiting: gauge('Turns that wait for a slot or for resources, and KV loads that wait for resources.', {}),
  admission_wait_seconds: histogram(
    'Time that turns waited for a slot or for resources, and KV loads for resources, by outcome. Those with requirements count also where they did not wait. `no_room`: the turn went on without a slot.',
    waitSeconds,
    { kind: ['prefill', 'load'], outcome: ['admitted', 'no_room', 'refused', 'left'] },
  ),
  admission_refused_total: counter(
    'Turns answered with 429 and KV loads skipped, by reason: too many waiting, or the wait timed out.',
    { kind: ['prefill', 'load'], reason: ['full', 'timeout'] },
  ),
  admission_leases_expired_total: counter(
    'Turns whose resources were released by lease because no end of turn was reported. Should stay at zero.',
    { kind: ['prefill', 'load'] },
  ),
  admission_resource_in_use: gauge(
    'Copies of a resource in use, by pod; the pod of a global resource is `global`.',
    perResource,
  ),
  admission_resource_capacity: gauge(
    'Copies of a resource, by pod; the pod of a global resource is `global`.',
    perResource,
  ),
  ext_proc_streams_active: gauge(
    'Open ext_proc streams and undecided turns. The stream of a create is open until its response ends.',
    {},
  ),
  ext_proc_message_duration_seconds: histogram(
    'Time from a message of Envoy to its reply, including KV loads.',
    messageSeconds,
    {
      phase: [
        'request_headers',
        'request_body',
        'request_trailers',
        'response_headers',
        'response_body',
        'response_trailers',
      ],
    },
  ),
  ext_proc_peers_refused_total: counter(
    'Connections to the gRPC port that TLS refused, by reason: the client’s certificate, or another fault.',
    { reason: ['certificate', 'handshake'] },
  ),
  access_log_malformed_total: counter(
    'Entries of Envoy’s access log that cannot be read, or have a ticket that no gateway of this deployment made; they end no turn.',
    {},
  ),
  build_info: sharedGauge('Always 1; the labels are the versions of gateway and Node.js.', {
    version: 'of the gateway',
    node_version: 'of Node.js',
  }),
} satisfies Record<string, MetricDefinition>

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
