import type { Decision, ForwardDecision } from '../context/context-cache-manager.ts'
import { GatewayError, toErrorResponse } from '../openai/gateway-error.ts'

/** A decision in terms of HTTP. Names of headers in lower case, their values as latin1 bytes. */
export type Outcome =
  | {
      readonly kind: 'forward'
      readonly setHeaders: Readonly<Record<string, string>>
      /** Endpoint-picker protocol: the chosen pod, then fallbacks, separated by commas. Undefined: Envoy chooses. */
      readonly destinations: string | undefined
      /** Dynamic metadata `ctx` for Lua filter and access log: splice, model, headers (`name:value` lines), turn. */
      readonly ctx: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'respond'
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: Buffer
      /** Becomes Envoy's RESPONSE_CODE_DETAILS. */
      readonly details: string
    }

/** local_reply_config leaves responses alone whose details begin with this. */
const detailsPrefix = 'ctx_'

/** Envoy frames messages by itself. A content-length from here would split one request into two. */
const framingHeaders: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

/** Statuses without a body (RFC 9110). */
const bodiless: ReadonlySet<number> = new Set([204, 304])

/** Throws when the body of a response cannot be written as JSON. */
export const outcomeOf = (decision: Decision): Outcome => {
  switch (decision.kind) {
    case 'passthrough':
    case 'forward':
      return forward(decision.destinations, decision)
    case 'response':
      return respondJson(decision, 'answer')
    case 'cached-response':
      return {
        kind: 'respond',
        status: 200,
        headers: { 'content-type': decision.contentType, ...withoutFraming(decision.headers) },
        body: decision.body,
        details: `${detailsPrefix}replay`,
      }
    case 'reject':
      return respondJson(toErrorResponse(decision.error), decision.error.code)
    case 'cancelled':
      // Envoy has closed the stream, so this response is never sent.
      return outcomeOf({ kind: 'reject', error: new GatewayError('internal_error') })
  }
}

/** The pods of a request as one text. Undefined: Envoy chooses. */
export const listOf = (destinations: readonly string[]): string | undefined =>
  destinations.length === 0 ? undefined : destinations.join(',')

const forward = (pods: readonly string[], part: Omit<Partial<ForwardDecision>, 'kind' | 'destinations'>): Outcome => {
  const { path, splice, expectModel: model, ticket, requestHeaders = {}, responseHeaders = {} } = part
  const lines = Object.entries(responseHeaders).map(([name, value]) => `${name}:${value}\n`)
  return {
    kind: 'forward',
    setHeaders: { ...withoutFraming(requestHeaders), ...(path === undefined ? {} : { ':path': path }) },
    destinations: listOf(pods),
    ctx: {
      ...(splice === undefined ? {} : { splice }),
      ...(model === undefined ? {} : { model }),
      ...(ticket === undefined ? {} : { turn: ticket }),
      ...(lines.length === 0 ? {} : { headers: lines.join('') }),
    },
  }
}

const respondJson = (
  response: { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown },
  code: string,
): Outcome => ({
  kind: 'respond',
  status: response.status,
  headers: { 'content-type': 'application/json', ...withoutFraming(response.headers) },
  body: bodiless.has(response.status) ? Buffer.alloc(0) : Buffer.from(JSON.stringify(response.body)),
  details: `${detailsPrefix}${code}`,
})

const withoutFraming = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !framingHeaders.has(name)))

/** A decision as a ProcessingResponse to the message of this phase. */
export const decisionMessage = (phase: string, decision: Decision): object => {
  const outcome = outcomeOf(decision)
  if (outcome.kind === 'respond') {
    const { status, headers, body, details } = outcome
    return { immediate_response: { status: { code: status }, headers: headerOptions(headers), body, details } }
  }
  const { setHeaders, destinations, ctx } = outcome
  return {
    [phase]: { response: headerMutation(setHeaders) },
    ...lbMetadata(destinations, Object.keys(ctx).length === 0 ? {} : { ctx: structOf(ctx) }),
  }
}

/** Name of the header and of the metadata by which a picker names the pods of a request. */
export const destinationKey = 'x-gateway-destination-endpoint'

/** The part of a ProcessingResponse that sets dynamic metadata: the pods of a request, and what `others` has. */
export const lbMetadata = (destinations: string | undefined, others: Readonly<Record<string, object>> = {}): object => {
  const fields = {
    ...(destinations === undefined ? {} : { 'envoy.lb': structOf({ [destinationKey]: destinations }) }),
    ...others,
  }
  return Object.keys(fields).length === 0 ? {} : { dynamic_metadata: { fields } }
}

/** A CommonResponse that sets and removes headers. */
export const headerMutation = (headers: Readonly<Record<string, string>>, remove: readonly string[] = []): object =>
  Object.keys(headers).length === 0 && remove.length === 0
    ? {}
    : { header_mutation: { ...headerOptions(headers), remove_headers: remove } }

const overwriteOrAdd = 2

/** Values as `raw_value`: Envoy makes an empty header of the string field `value`. */
const headerOptions = (headers: Readonly<Record<string, string>>): object => ({
  set_headers: Object.entries(headers).map(([key, value]) => ({
    header: { key, raw_value: Buffer.from(value, 'latin1') },
    append_action: overwriteOrAdd,
  })),
})

const structOf = (values: Readonly<Record<string, string>>): object => ({
  structValue: {
    fields: Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { stringValue: value }])),
  },
})
