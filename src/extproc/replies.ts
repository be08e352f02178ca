import type { Decision, ForwardDecision } from '../context/context-cache-manager.ts'
import { GatewayError, toErrorResponse } from '../openai/gateway-error.ts'

/** Texts by name; those that are empty or undefined are left out. */
type Texts = Readonly<Record<string, string | undefined>>

/** Headers by name, in lower case; their values are latin1 bytes. */
type Headers = Readonly<Record<string, string>>

/** Becomes Envoy's RESPONSE_CODE_DETAILS. local_reply_config leaves responses alone whose details begin with this. */
const detailsPrefix = 'ctx_'

/** Envoy frames messages by itself. A content-length from here would split one request into two. */
const framingHeaders: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

/** Statuses without a body (RFC 9110). */
const bodiless: ReadonlySet<number> = new Set([204, 304])

/**
 * A decision as a ProcessingResponse to the message of this phase. `path` is the request's: errors take its API's form.
 * @throws when the body of a response cannot be written as JSON
 */
export const decisionMessage = (phase: string, decision: Decision, path?: string): object => {
  switch (decision.kind) {
    case 'passthrough':
    case 'forward':
      return forward(phase, decision.destinations, decision)
    case 'response':
      return respondJson(decision, 'answer')
    case 'cached-response': {
      const { contentType, headers, body } = decision
      return respond(200, { 'content-type': contentType, ...withoutFraming(headers) }, body, 'replay')
    }
    case 'reject':
      return respondJson(toErrorResponse(decision.error, path), decision.error.code)
    case 'cancelled':
      // Envoy has closed the stream, so this response is never sent.
      return decisionMessage(phase, { kind: 'reject', error: new GatewayError('internal_error') })
  }
}

/** The pods of a request as one text, in the endpoint-picker protocol. Undefined: Envoy chooses. */
export const listOf = (destinations: readonly string[]): string | undefined =>
  destinations.length === 0 ? undefined : destinations.join(',')

const forward = (
  phase: string,
  pods: readonly string[],
  part: Omit<Partial<ForwardDecision>, 'kind' | 'destinations'>,
): object => {
  const { path, splice, expectModel: model, ticket: turn, requestHeaders = {}, responseHeaders = {}, body } = part
  const lines = Object.entries(responseHeaders).map(([name, value]) => `${name}:${value}\n`)
  const setHeaders = {
    ...withoutFraming(requestHeaders),
    ...(path === undefined ? {} : { ':path': path }),
    // Envoy compares it with a body that takes the place of a buffered one.
    ...(body === undefined ? {} : { 'content-length': String(body.length) }),
  }
  return {
    [phase]: { response: { ...headerMutation(setHeaders), ...bodyMutation(body) } },
    ...dynamicMetadata(listOf(pods), { splice, model, turn, headers: lines.join('') }),
  }
}

const respondJson = (
  { status, headers, body }: { readonly status: number; readonly headers: Headers; readonly body: unknown },
  code: string,
): object => {
  const text = bodiless.has(status) ? '' : JSON.stringify(body)
  return respond(status, { 'content-type': 'application/json', ...withoutFraming(headers) }, Buffer.from(text), code)
}

const respond = (code: number, headers: Headers, body: Buffer, details: string): object => ({
  immediate_response: {
    status: { code },
    headers: headerOptions(headers),
    body,
    details: `${detailsPrefix}${details}`,
  },
})

const withoutFraming = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !framingHeaders.has(name)))

/** Name of the header and of the metadata by which a picker names the pods of a request. */
export const destinationKey = 'x-gateway-destination-endpoint'

/** The part of a ProcessingResponse that sets dynamic metadata. `ctx` is for the Lua filter and the access log. */
export const dynamicMetadata = (destinations: string | undefined, ctx: Texts = {}): object => {
  const fields = { ...structOf('envoy.lb', { [destinationKey]: destinations }), ...structOf('ctx', ctx) }
  return Object.keys(fields).length === 0 ? {} : { dynamic_metadata: { fields } }
}

const structOf = (name: string, texts: Texts): object => {
  const present = Object.entries(texts).filter(([, text]) => text !== undefined && text !== '')
  const fields = Object.fromEntries(present.map(([key, text]) => [key, { stringValue: text }]))
  return present.length === 0 ? {} : { [name]: { structValue: { fields } } }
}

/** A CommonResponse that sets and removes headers. */
export const headerMutation = (headers: Headers, remove: readonly string[] = []): object =>
  Object.keys(headers).length === 0 && remove.length === 0
    ? {}
    : { header_mutation: { ...headerOptions(headers), remove_headers: remove } }

/** The part of a CommonResponse that puts something in the place of a body. Undefined: it passes unchanged. */
export const bodyMutation = (body: Buffer | undefined): object => {
  if (body === undefined) return {}
  return { body_mutation: body.length === 0 ? { clear_body: true } : { body } }
}

const overwriteOrAdd = 2

/** Values as `raw_value`: Envoy makes an empty header of the string field `value`. */
const headerOptions = (headers: Headers): object => ({
  set_headers: Object.entries(headers).map(([key, value]) => ({
    header: { key, raw_value: Buffer.from(value, 'latin1') },
    append_action: overwriteOrAdd,
  })),
})
