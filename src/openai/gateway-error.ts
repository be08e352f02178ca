import { type ErrorCode, type ErrorForm, errorCodes, errorTypeOf } from './error-codes.ts'

/** An error with a response for the client. `cause` is for the log and never leaves the gateway. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  /** The invalid request parameter or header, as in OpenAI's errors. */
  readonly param: string | undefined
  /** Further response headers, such as `allow` or `retry-after`. */
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ErrorCode,
    options: {
      readonly message?: string
      readonly param?: string
      readonly headers?: Readonly<Record<string, string>>
      readonly cause?: unknown
    } = {},
  ) {
    super(options.message ?? errorCodes[code].message, { cause: options.cause })
    this.code = code
    this.param = options.param
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return errorCodes[this.code].status
  }

  /** Any thrown value as a GatewayError: an unexpected one is the cause of an `internal_error`. */
  static from(thrown: unknown): GatewayError {
    return thrown instanceof GatewayError ? thrown : new GatewayError('internal_error', { cause: thrown })
  }
}

const errorFormOf = (path: string): ErrorForm => (/^\/v1\/messages(?:[/?]|$)/.test(path) ? 'anthropic' : 'openai')

/**
 * A response in OpenAI's error shape, `{"error":{message,type,param,code}}`. Below `/v1/messages` it is Anthropic's,
 * `{"type":"error","error":{type,message}}`, whose SDKs ignore the further members. SDKs obey `x-should-retry`.
 */
export const toErrorResponse = (
  error: GatewayError,
  /** Of the request. Default: one of OpenAI's. */
  path = '',
): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown } => {
  const { status, code, message, param = null } = error
  const retryHeaders =
    status === 429 || status >= 500 ? { 'x-should-retry': 'true', 'retry-after': '1' } : { 'x-should-retry': 'false' }
  const form = errorFormOf(path)
  const body = { error: { message, type: errorTypeOf(status, form), param, code } }
  return {
    status,
    headers: { ...retryHeaders, ...error.headers },
    body: form === 'anthropic' ? { type: 'error', ...body } : body,
  }
}
