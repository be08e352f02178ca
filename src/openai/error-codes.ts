/** OpenAI's error types: what an SDK turns into its exception classes, next to the status. */
type ErrorType = 'invalid_request_error' | 'authentication_error' | 'rate_limit_error' | 'api_error'

interface ErrorEntry {
  /** HTTP status. */
  readonly status: number
  readonly type: ErrorType
  /** Whether an SDK should try again by itself (`x-should-retry`). */
  readonly retry: boolean
  /** Default text for people: what is wrong and what to do. */
  readonly message: string
}

/** Every error a client can get from the gateway. docs/errors.md explains them one by one; a test holds the two together. */
export const errorCodes = {
  invalid_session_id: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'Send one x-session-id header, with an id that POST /v1/context returned.',
  },
  invalid_ttl: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'x-session-ttl is a whole number of seconds, sent once, like 3600.',
  },
  ttl_out_of_range: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The TTL is out of the allowed range.',
  },
  invalid_json: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The request body is not a JSON object.',
  },
  invalid_encoding: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The request body is not valid UTF-8.',
  },
  json_too_complex: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The request body is nested too deeply or has too many keys.',
  },
  duplicate_key: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'A member of the request body appears twice.',
  },
  missing_required_parameter: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'A required parameter is missing.',
  },
  invalid_type: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'A parameter has the wrong type.',
  },
  model_mismatch: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The session was created with another model. Use its model, or create a new context.',
  },
  invalid_routing_strategy: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'The routing-strategy header names no known policy.',
  },
  invalid_page: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'limit is a whole number from 1 to 100, and after is the id of a session.',
  },
  idempotency_key_reused: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'This Idempotency-Key was used with another request body. Use a new key for a new request.',
  },
  invalid_idempotency_key: {
    status: 400,
    type: 'invalid_request_error',
    retry: false,
    message: 'Send one Idempotency-Key header of 1 to 255 printable ASCII characters.',
  },
  invalid_api_key: {
    status: 401,
    type: 'authentication_error',
    retry: false,
    message:
      'Send one Authorization header, such as "Authorization: Bearer YOUR_KEY". Sessions belong to its credential.',
  },
  session_not_found: {
    status: 404,
    type: 'invalid_request_error',
    retry: false,
    message: 'No such session. It may have expired or been deleted; create a new one with POST /v1/context.',
  },
  unknown_path: { status: 404, type: 'invalid_request_error', retry: false, message: 'Unknown path.' },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request_error',
    retry: false,
    message: 'This method is not allowed here.',
  },
  session_expired: {
    status: 410,
    type: 'invalid_request_error',
    retry: false,
    message: 'The session has expired. Create a new one with POST /v1/context.',
  },
  session_deleted: {
    status: 410,
    type: 'invalid_request_error',
    retry: false,
    message: 'The session was deleted. Create a new one with POST /v1/context.',
  },
  request_too_large: {
    status: 413,
    type: 'invalid_request_error',
    retry: false,
    message: 'The request body is too large.',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request_error',
    retry: false,
    message: 'Send the body as uncompressed JSON with "Content-Type: application/json".',
  },
  rate_limit_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    retry: true,
    message: 'Too many turns are under way and waiting right now. Try again after the time that Retry-After names.',
  },
  internal_error: {
    status: 500,
    type: 'api_error',
    retry: true,
    message: 'The gateway failed to handle the request. Please try again.',
  },
  session_store_unavailable: {
    status: 503,
    type: 'api_error',
    retry: true,
    message: 'The session store cannot be reached right now. Nothing was changed; try again shortly.',
  },
  no_ready_endpoints: {
    status: 503,
    type: 'api_error',
    retry: true,
    message: 'No engine is ready to serve right now. Try again shortly.',
  },
} as const satisfies Record<string, ErrorEntry>

/** Stable, machine-readable name of an error; stands in the body's `code`. */
export type ErrorCode = keyof typeof errorCodes
