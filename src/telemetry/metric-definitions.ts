/** The values a label may take: a closed list, or the first `atMost` that occur. Every other value is counted as `other`. */
export type LabelRange = readonly string[] | { readonly atMost: number }

/** One metric, without the prefix that all have in common. */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** What it tells, in one sentence: the HELP text, and its line in docs/metrics.md. */
  readonly help: string
  readonly labels: Readonly<Record<string, LabelRange>>
  /** Upper bounds of a histogram's buckets, in the unit of its name. */
  readonly buckets?: readonly number[]
}

/** Every metric of the gateway is named with this in front. */
export const metricPrefix = 'context_cache_'

const loadSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const storeSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const messageSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const waitSeconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const lagSeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** Every metric there is. docs/metrics.md lists them; a test holds the two together. */
export const metricDefinitions = {
  requests_total: {
    type: 'counter',
    help: 'Requests that reached the gateway, by what they asked for and what became of them.',
    labels: {
      route: ['create', 'completions', 'chat_completions', 'responses', 'get', 'list', 'update', 'delete', 'other'],
      outcome: ['forwarded', 'answered', 'passed', 'rejected', 'failed', 'abandoned'],
    },
  },
  lookups_total: {
    type: 'counter',
    help: 'Look-ups of a session for a turn, by what was found.',
    labels: { result: ['active', 'expired', 'deleted', 'unknown', 'store_unavailable'] },
  },
  sessions_active: { type: 'gauge', help: 'Sessions that live in the store.', labels: {} },
  sessions_created_total: { type: 'counter', help: 'Sessions that were created.', labels: {} },
  sessions_deleted_total: {
    type: 'counter',
    help: 'Sessions that ended, by reason: their time, a request, or that the memory store had to make room, by number or by memory.',
    labels: { reason: ['ttl', 'api', 'count', 'memory'] },
  },
  sessions_bytes: {
    type: 'gauge',
    help: 'About what the sessions of the memory store take of this process’s memory, with what is remembered of those that ended.',
    labels: {},
  },
  kv_stored_bytes: {
    type: 'gauge',
    help: 'KV that sessions have stored; with Redis only where a limit is set.',
    labels: {},
  },
  kv_evictions_total: {
    type: 'counter',
    help: 'Stored KV that sessions lost, by reason: to make room, or because no pod can load it any more.',
    labels: { reason: ['size', 'stale'] },
  },
  turns_total: {
    type: 'counter',
    help: 'Turns that ended, by how: the answer arrived whole, its session was deleted meanwhile, the engine answered with an error, the engine failed, the client left, or the answer broke off.',
    labels: { outcome: ['completed', 'gone', 'engine_error', 'upstream_failed', 'client_left', 'incomplete'] },
  },
  turns_in_flight: { type: 'gauge', help: 'Turns that this process sent out and that have not ended yet.', labels: {} },
  prompt_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens of completed turns, by the usage in their answers.',
    labels: {},
  },
  cached_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens of completed turns that the engine did not have to compute, by the usage in their answers.',
    labels: {},
  },
  kv_load_duration_seconds: {
    type: 'histogram',
    help: 'Time to find a session’s KV in the chosen pod or to load it there from the store.',
    labels: {
      result: [
        'resident',
        'loaded',
        'on_demand',
        'empty',
        'not_worthwhile',
        'missing',
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
    help: 'Time to bring the KV that a turn left in its pod into the store.',
    labels: { result: ['stored', 'unchanged', 'superseded', 'none'] },
    buckets: loadSeconds,
  },
  removals_pending: {
    type: 'gauge',
    help: 'Pieces of KV that have to be removed and are not yet: it should fall back to zero.',
    labels: {},
  },
  degraded_total: {
    type: 'counter',
    help: 'Turns that went on without something of the cache because it failed, by what it was.',
    labels: { reason: { atMost: 32 } },
  },
  store_duration_seconds: {
    type: 'histogram',
    help: 'Time of one operation of the session store.',
    labels: { op: { atMost: 32 } },
    buckets: storeSeconds,
  },
  store_errors_total: {
    type: 'counter',
    help: 'Operations of the session store that failed.',
    labels: { op: { atMost: 32 } },
  },
  store_circuit_open: {
    type: 'gauge',
    help: '1 while the session store counts as down and is only asked now and then, else 0.',
    labels: {},
  },
  corrupted_records_total: {
    type: 'counter',
    help: 'Records in the session store that could not be read; they count as not there.',
    labels: {},
  },
  routing_decisions_total: {
    type: 'counter',
    help: 'Turns by the pod that was chosen and the policy that chose it.',
    labels: { policy: { atMost: 16 }, pod: { atMost: 64 } },
  },
  response_cache_lookups_total: {
    type: 'counter',
    help: 'Requests that the response cache could have answered: it did, or they were computed.',
    labels: { result: ['hit', 'miss'] },
  },
  response_cache_evictions_total: {
    type: 'counter',
    help: 'Answers that left the response cache to make room for others.',
    labels: {},
  },
  response_cache_entries: { type: 'gauge', help: 'Answers in the response cache.', labels: {} },
  response_cache_bytes: {
    type: 'gauge',
    help: 'Memory that the response cache takes, answers and their requests.',
    labels: {},
  },
  admission_waiting: {
    type: 'gauge',
    help: 'Turns, and loads of KV, that wait for resources right now.',
    labels: {},
  },
  admission_wait_seconds: {
    type: 'histogram',
    help: 'Time that a turn or a load of KV that requires resources waited for them, none included, by how the wait ended.',
    labels: { kind: ['prefill', 'load'], outcome: ['admitted', 'refused', 'left'] },
    buckets: waitSeconds,
  },
  admission_refused_total: {
    type: 'counter',
    help: 'Turns that were answered 429, and loads that were not made, because too many were waiting or the wait took too long.',
    labels: { kind: ['prefill', 'load'], reason: ['full', 'timeout'] },
  },
  admission_leases_expired_total: {
    type: 'counter',
    help: 'Turns whose end was never told, so that their resources came free by lease: it should stay at zero.',
    labels: { kind: ['prefill', 'load'] },
  },
  admission_resource_in_use: {
    type: 'gauge',
    help: 'Copies of a resource that are in use, at a pod or of a global one.',
    labels: { resource: { atMost: 64 }, pod: { atMost: 64 } },
  },
  admission_resource_capacity: {
    type: 'gauge',
    help: 'Copies of a resource that there are, at a pod or of a global one.',
    labels: { resource: { atMost: 64 }, pod: { atMost: 64 } },
  },
  ext_proc_streams_active: {
    type: 'gauge',
    help: 'Requests that Envoy asks about: open ext_proc streams, and turns that wait for their verdict.',
    labels: {},
  },
  ext_proc_message_duration_seconds: {
    type: 'histogram',
    help: 'Time from a message of Envoy to the answer, KV loads included.',
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
    help: 'Entries of Envoy’s access log that could not be read: ends of turns that were missed.',
    labels: {},
  },
  eventloop_lag_seconds: {
    type: 'histogram',
    help: 'By how much a timer of the process was late: what any request may have waited for the event loop.',
    labels: {},
    buckets: lagSeconds,
  },
  build_info: {
    type: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: { version: { atMost: 1 }, node_version: { atMost: 1 } },
  },
} as const satisfies Record<string, MetricDefinition>

/** A metric's name without the prefix. */
export type MetricName = keyof typeof metricDefinitions

type Labels<Name extends MetricName> = (typeof metricDefinitions)[Name]['labels']

/** What a label of a metric may be set to: one of its closed list, or any text where the range is open (then only the first ones are told apart). */
export type LabelValue<
  Name extends MetricName,
  Label extends keyof Labels<Name>,
> = Labels<Name>[Label] extends readonly (infer Value extends string)[] ? Value : string

/** The table of docs/metrics.md, in Markdown. */
export const renderMetricsTable = (): string =>
  [
    '| metric | type | labels | what it tells |',
    '| --- | --- | --- | --- |',
    ...Object.entries<MetricDefinition>(metricDefinitions).map(
      ([name, { type, labels, help }]) =>
        `| \`${metricPrefix}${name}\` | ${type} | ${renderLabels(labels) || '–'} | ${help} |`,
    ),
  ].join('\n')

const renderLabels = (labels: MetricDefinition['labels']): string =>
  Object.entries(labels)
    .map(([label, range]) => `\`${label}\`: ${renderRange(range)}`)
    .join('; ')

const renderRange = (range: LabelRange): string =>
  'atMost' in range ? `at most ${range.atMost} values, then \`other\`` : range.map((value) => `\`${value}\``).join(', ')
