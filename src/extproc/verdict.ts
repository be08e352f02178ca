import type { ForwardDecision, HeadersDecision, ResponseObserver } from '../context/context-cache-manager.ts'
import { encodeTicket } from '../context/turn-ticket.ts'
import { GatewayError, toErrorResponse } from '../openai/gateway-error.ts'
import type { DynamicMetadata, ImmediateAnswer, MetadataValue, RequestChanges } from './messages.ts'

/** Reads a request's body and decides then. */
export type DecideOnBody = Extract<HeadersDecision, { kind: 'need-body' }>['decide']

/** A decision in the terms of this protocol, whatever phase it is given in. */
export type Verdict =
  | {
      readonly kind: 'proceed'
      readonly changes: RequestChanges
      /** Who is to be told of the answer. */
      readonly observer?: ResponseObserver | undefined
    }
  | { readonly kind: 'immediate'; readonly answer: ImmediateAnswer }
  | { readonly kind: 'need-body'; readonly decide: DecideOnBody }

/** Envoy's local_reply_config leaves answers alone whose details begin with this. */
const detailsPrefix = 'ctx_'

/** Envoy frames messages by itself. A content-length of ours would split one request into two. */
const framingHeaders: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

/** Statuses whose answer has no body by HTTP's rules. */
const bodiless: ReadonlySet<number> = new Set([204, 304])

/** A decision of the context service as a verdict. Throws when an answer's body cannot be written as JSON. */
export const toVerdict = (decision: HeadersDecision): Verdict => {
  switch (decision.kind) {
    case 'passthrough':
      return {
        kind: 'proceed',
        changes: { setHeaders: {}, metadata: routingMetadata(decision.destinations) },
        observer: decision.observer,
      }
    case 'forward':
      return { kind: 'proceed', changes: forwardChanges(decision), observer: decision.observer }
    case 'response':
      return { kind: 'immediate', answer: jsonAnswer({ ...decision, code: 'answer' }) }
    case 'cached-response':
      return {
        kind: 'immediate',
        answer: {
          status: 200,
          headers: { 'content-type': decision.contentType, ...withoutFraming(decision.headers) },
          body: decision.body,
          details: `${detailsPrefix}replay`,
        },
      }
    case 'reject':
      return rejection(decision.error)
    case 'cancelled':
      // Envoy has closed the stream: the verdict is not sent.
      return rejection(new GatewayError('internal_error'))
    case 'need-body':
      return decision
  }
}

/** The verdict on a request that failed, in OpenAI's error shape. */
export const rejection = (error: GatewayError): Verdict & { readonly kind: 'immediate' } => ({
  kind: 'immediate',
  answer: jsonAnswer({ ...toErrorResponse(error), code: error.code }),
})

const forwardChanges = (decision: ForwardDecision): RequestChanges => ({
  setHeaders:
    decision.path === undefined
      ? withoutFraming(decision.requestHeaders)
      : { ...withoutFraming(decision.requestHeaders), ':path': decision.path },
  metadata: forwardMetadata(decision),
})

/**
 * The endpoint-picker protocol's place for the chosen pod and its fallbacks, separated by commas. (Every turn makes these objects, and names that are
 * written out take a tenth of what computed ones do.)
 */
const routingMetadata = (destinations: readonly string[]): Record<string, DynamicMetadata[string]> =>
  destinations.length === 0 ? {} : { 'envoy.lb': { 'x-gateway-destination-endpoint': destinations.join(',') } }

/** One text for all of them: Envoy parses, copies and hands on every member of its metadata by itself. */
const headerLines = (headers: Readonly<Record<string, string>>): string => {
  let lines = ''
  for (const name of Object.keys(headers)) lines += `${name}:${headers[name] ?? ''}\n`
  return lines
}

/** `ctx` is what Envoy's Lua filter and access log read: splice, model, headers (a line for each, `name:value`), turn. */
const forwardMetadata = (decision: ForwardDecision): DynamicMetadata => {
  const metadata = routingMetadata(decision.destinations)
  const notes: Record<string, MetadataValue> = {}
  if (decision.splice !== undefined) notes['splice'] = decision.splice
  if (decision.expectModel !== undefined) notes['model'] = decision.expectModel
  if (decision.ticket !== undefined) notes['turn'] = encodeTicket(decision.ticket)
  const headers = headerLines(decision.responseHeaders)
  if (headers !== '') notes['headers'] = headers
  if (Object.keys(notes).length > 0) metadata['ctx'] = notes
  return metadata
}

const jsonAnswer = (answer: {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  readonly code: string
}): ImmediateAnswer => ({
  status: answer.status,
  headers: { 'content-type': 'application/json', ...withoutFraming(answer.headers) },
  body: bodiless.has(answer.status) ? Buffer.alloc(0) : Buffer.from(JSON.stringify(answer.body)),
  details: `${detailsPrefix}${answer.code}`,
})

const withoutFraming = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
  const names = Object.keys(headers)
  return names.some((name) => framingHeaders.has(name))
    ? Object.fromEntries(Object.entries(headers).filter(([name]) => !framingHeaders.has(name)))
    : headers
}
