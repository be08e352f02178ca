/** A kind of span. */
export type SpanName = 'request' | 'lookup' | 'route' | 'load' | 'end' | 'offload'

interface Attribute {
  readonly spans: readonly SpanName[]
  readonly meaning: string
}

/** Every attribute of a span, as docs/traces.md lists them. None holds what a client wrote or chose. */
export const attributes = {
  'gen_ai.operation.name': {
    spans: ['request'],
    meaning: '`chat` or `text_completion`, of requests that go to an engine.',
  },
  'gen_ai.request.model': {
    spans: ['request', 'end'],
    meaning: 'Model, where an engine lists it. Any other name may be one that a client made up.',
  },
  'gen_ai.usage.input_tokens': { spans: ['request', 'end'], meaning: 'Prompt tokens, from the usage of the answer.' },
  'gen_ai.usage.output_tokens': { spans: ['request', 'end'], meaning: 'Output tokens, from the usage of the answer.' },
  'gen_ai.usage.cache_read.input_tokens': {
    spans: ['request', 'end'],
    meaning: 'Prompt tokens that the engine read from its cache, from the usage of the answer.',
  },
  'http.response.status_code': { spans: ['end'], meaning: 'Status of the answer; left out where none was sent.' },
  'error.type': {
    spans: ['request', 'lookup', 'end'],
    meaning:
      'Code of the error that the gateway answered, `session_store_failed`, or the outcome of a turn that did not complete.',
  },
  'context_cache.route': { spans: ['request'], meaning: '`route` of `context_cache_requests_total`.' },
  'context_cache.outcome': {
    spans: ['request', 'end'],
    meaning: '`outcome` of `context_cache_requests_total`; at the end that of `context_cache_turns_total`.',
  },
  'context_cache.status': { spans: ['request'], meaning: '`x-context-cache` of the answer.' },
  'context_cache.session': {
    spans: ['request', 'end'],
    meaning: '`digest` of the session, 8 characters, as in the log.',
  },
  'context_cache.named_by': {
    spans: ['request'],
    meaning: 'Kind of the client’s name that chose the session, never the name.',
  },
  'context_cache.pool': { spans: ['request', 'end'], meaning: 'Name of the pool.' },
  'context_cache.pod': {
    spans: ['request', 'route', 'load', 'end', 'offload'],
    meaning: '`host:port` of the chosen pod; at the end the one that served.',
  },
  'context_cache.wait_ms': {
    spans: ['request'],
    meaning: 'Time that the turn waited for a slot and for resources, milliseconds.',
  },
  'context_cache.result': {
    spans: ['lookup', 'route', 'load', 'offload'],
    meaning:
      'What came of it: as `result` of `context_cache_lookups_total` (of a create `created`, `existing` or `key-reused`); `routed` or why not; `hit` or `miss`; `stored`, `unchanged` or `none`.',
  },
  'context_cache.policy': { spans: ['route'], meaning: 'Routing policy that chose.' },
  'context_cache.tier': {
    spans: ['load'],
    meaning: 'Where the KV lay: `gpu`, `cpu` (memory beside the engine) or `store`.',
  },
  'context_cache.tokens': {
    spans: ['load', 'offload'],
    meaning: 'Tokens whose KV lies in the pod, or was stored.',
  },
  'context_cache.load_ms': { spans: ['load'], meaning: 'Duration of a load from the store, milliseconds.' },
  'context_cache.bytes': { spans: ['offload'], meaning: 'Size of the stored KV, bytes.' },
  'context_cache.reason': {
    spans: ['load', 'offload'],
    meaning: 'Why there was no KV (the reasons of `x-context-cache`), or why none was stored.',
  },
  'context_cache.ttfb_ms': {
    spans: ['end'],
    meaning: 'From the last byte of the request to the first of the answer’s body, milliseconds.',
  },
} as const satisfies Readonly<Record<string, Attribute>>

/** Attributes of one span. Those that are undefined are left out. */
export type SpanFacts = { readonly [Name in keyof typeof attributes]?: string | number | undefined }
