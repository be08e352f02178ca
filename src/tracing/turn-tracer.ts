import type { Decision, GatewayRequest } from '../context/context-cache-manager.ts'
import type { ContextEvents, TurnOutcome } from '../context/context-events.ts'
import { parentSpanOf } from '../context/request-trace.ts'
import type { TurnTicket } from '../context/turn-ticket.ts'
import type { DecidedFacts, TurnTracer } from '../context/turn-tracer.ts'
import { inferenceApiOf } from '../openai/create-body.ts'
import { digestOf } from '../sessions/session-record.ts'
import type { SpanFacts } from './attributes.ts'
import type { Follower, OpenSpan } from './follower.ts'

/** A span for each decision, and one for each end of a turn, in the trace of its request. */
export const createTurnTracer = (follower: Follower): TurnTracer => ({
  start: (request) => {
    const span = follower.open('request', parentSpanOf(request))
    return (
      span && {
        run: (part) => span.run(part),
        decided: (decision, facts) => {
          describe(span, request, decision, facts)
          span.end()
          return withContext(decision, span)
        },
      }
    )
  },
  end: async ({ traceId, spanId }, work) => {
    const parent = traceId === undefined || spanId === undefined ? undefined : { traceId, spanId, isSampled: true }
    const span = parent && follower.open('end', parent)
    if (span === undefined) return follower.apart(work)
    try {
      await span.run(work)
    } finally {
      span.end()
    }
  },
})

/** The same events. The end of a turn also sets the attributes of its span. */
export const followEvents = (events: ContextEvents, follower: Follower): ContextEvents => ({
  ...events,
  turnEnded: (outcome, usage, turn) => {
    const span = follower.current()
    span?.set({
      'gen_ai.request.model': turn.model,
      'gen_ai.usage.input_tokens': usage?.promptTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage?.cachedTokens,
      'context_cache.session': turn.session && digestOf(turn.session),
      'context_cache.pool': turn.pool,
      'context_cache.pod': turn.pod,
      'context_cache.outcome': outcome,
      'context_cache.ttfb_ms': turn.ttfbMs,
      'http.response.status_code': turn.status || undefined,
    })
    if (!wentWell.has(outcome)) span?.fail(outcome)
    events.turnEnded(outcome, usage, turn)
  },
})

const wentWell: ReadonlySet<TurnOutcome> = new Set(['completed', 'gone'])

const describe = (
  span: OpenSpan,
  request: GatewayRequest,
  decision: Decision<TurnTicket>,
  { route, outcome, model }: DecidedFacts,
): void => {
  span.set({ 'context_cache.route': route, 'context_cache.outcome': outcome })
  switch (decision.kind) {
    case 'forward':
      span.set({ ...forwardedFacts(request, decision), 'gen_ai.request.model': model })
      return
    case 'passthrough':
      span.set({ 'context_cache.pod': decision.destinations[0] })
      return
    case 'cached-response':
      span.set({ 'context_cache.status': decision.headers['x-context-cache'] })
      return
    case 'reject':
      span.fail(decision.error.code)
      return
    case 'response':
    case 'cancelled':
      return
  }
}

const forwardedFacts = (
  request: GatewayRequest,
  { path = request.path, ticket }: Extract<Decision<TurnTicket>, { readonly kind: 'forward' }>,
): SpanFacts => {
  const api = inferenceApiOf(path.split('?')[0] ?? '')
  const operation = api === 'completions' ? 'text_completion' : 'chat'
  return {
    'gen_ai.operation.name': api === undefined ? undefined : operation,
    'context_cache.status': ticket?.cacheStatus,
    'context_cache.session': ticket?.session && digestOf(ticket.session.key),
    'context_cache.named_by': ticket?.namedBy,
    'context_cache.pool': ticket?.pool,
    'context_cache.pod': ticket?.pod,
    'context_cache.wait_ms': ticket?.waitedMs,
  }
}

/** The pod's span is a child of the gateway's. `tracestate` stays as the client sent it. */
const withContext = (decision: Decision<TurnTicket>, span: OpenSpan): Decision<TurnTicket> => {
  if (decision.kind !== 'forward' && decision.kind !== 'passthrough') return decision
  const requestHeaders = { ...decision.requestHeaders, traceparent: span.traceparent }
  if (decision.kind === 'passthrough') return { ...decision, requestHeaders }
  const { traceId, spanId } = span
  return { ...decision, requestHeaders, ticket: decision.ticket && { ...decision.ticket, traceId, spanId } }
}
