/** Whose form an error takes, by the API of its path. */
export type ErrorForm = 'openai' | 'anthropic'

/** Error types of OpenAI and Anthropic: with the status, they decide which exception an SDK throws. */
type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'api_error'

/** Status and default message of every error of the gateway. docs/errors.md explains each; a test compares the two. */
export const errorCodes = {
  invalid_session_id: {
    status: 400,
    message: 'Send one x-session-id header, with an id that POST /v1/context returned.',
  },
  invalid_ttl: { status: 400, message: 'x-session-ttl is a whole number of seconds, sent once, like 3600.' },
  ttl_out_of_range: { status: 400, message: 'The TTL is out of the allowed range.' },
  invalid_json: { status: 400, message: 'The request body is not a JSON object.' },
  invalid_encoding: { status: 400, message: 'The request body is not valid UTF-8.' },
  json_too_complex: { status: 400, message: 'The request body is nested too deeply or has too many keys.' },
  duplicate_key: { status: 400, message: 'A member of the request body appears twice.' },
  missing_required_parameter: { status: 400, message: 'A required parameter is missing.' },
  invalid_type: { status: 400, message: 'A parameter has the wrong type.' },
  model_mismatch: {
    status: 400,
    message: 'The session was created with another model. Use its model, or create a new context.',
  },
  invalid_routing_strategy: { status: 400, message: 'The routing-strategy header names no known policy.' },
  invalid_page: { status: 400, message: 'limit is a whole number from 1 to 100, and after is the id of a session.' },
  idempotency_key_reused: {
    status: 400,
    message: 'This Idempotency-Key was used with another request body. Use a new key for a new request.',
  },
  invalid_idempotency_key: {
    status: 400,
    message: 'Send one Idempotency-Key header of 1 to 255 printable ASCII characters.',
  },
  previous_response_not_found: {
    status: 400,
    message: 'No response of this caller has the id in previous_response_id. It may have expired or been deleted.',
  },
  conversation_locked: {
    status: 400,
    message: 'Another process is currently operating on this conversation. Please retry in a few seconds.',
  },
  conversation_too_large: {
    status: 400,
    message: 'The conversation, or one of its items, is larger than the operator allows. Begin a new one.',
  },
  invalid_value: { status: 400, message: 'A parameter has a value that is not allowed.' },
  unsupported_parameter: { status: 400, message: 'A parameter is not supported here.' },
  invalid_api_key: {
    status: 401,
    message:
      'Send one credential, such as "Authorization: Bearer YOUR_KEY" or "x-api-key: YOUR_KEY". Sessions belong to it.',
  },
  mutually_exclusive_parameters: { status: 400, message: 'Two parameters are given of which only one may be.' },
  session_not_found: {
    status: 404,
    message: 'No such session. It may have expired or been deleted; create a new one with POST /v1/context.',
  },
  response_not_found: { status: 404, message: 'No such response. It may have expired or been deleted.' },
  conversation_not_found: { status: 404, message: 'No such conversation. It may have expired or been deleted.' },
  item_not_found: { status: 404, message: 'No such item in this conversation.' },
  model_not_found: { status: 404, message: 'No engine serves this model. GET /v1/models lists those that exist.' },
  unknown_path: { status: 404, message: 'Unknown path.' },
  method_not_allowed: { status: 405, message: 'This method is not allowed here.' },
  session_expired: { status: 410, message: 'The session has expired. Create a new one with POST /v1/context.' },
  session_deleted: { status: 410, message: 'The session was deleted. Create a new one with POST /v1/context.' },
  request_too_large: { status: 413, message: 'The request body is too large.' },
  unsupported_media_type: {
    status: 415,
    message: 'Send the body as uncompressed JSON with "Content-Type: application/json".',
  },
  rate_limit_exceeded: {
    status: 429,
    message: 'Too many turns are under way and waiting right now. Try again after the time that Retry-After names.',
  },
  tenant_session_limit: {
    status: 429,
    message: 'This caller has as many sessions as it may. Delete some, or let them expire.',
  },
  tenant_storage_limit: {
    status: 429,
    message: 'The stored KV of this caller fills the room that it has. Delete some sessions, or let them expire.',
  },
  tenant_history_limit: {
    status: 429,
    message:
      'The responses and conversations of this caller fill the room that it has. Delete some, or let them expire.',
  },
  tenant_turn_limit: {
    status: 429,
    message: 'This caller has as many turns under way as it may. Try again when one of them has ended.',
  },
  internal_error: { status: 500, message: 'The gateway failed to handle the request. Please try again.' },
  session_store_unavailable: {
    status: 503,
    message: 'The session store does not answer. It is not known whether the request took effect; try again shortly.',
  },
  no_ready_endpoints: { status: 503, message: 'No engine is ready to serve right now. Try again shortly.' },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>

/** Stable, machine-readable name of an error: `code` in the response body. */
export type ErrorCode = keyof typeof errorCodes

/** `type` in the response body. Anthropic's API has two more, of statuses that both call a wrong request otherwise. */
export const errorTypeOf = (status: number, form: ErrorForm = 'openai'): ErrorType => {
  if (form === 'anthropic' && status === 404) return 'not_found_error'
  if (form === 'anthropic' && status === 413) return 'request_too_large'
  if (status === 401) return 'authentication_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
