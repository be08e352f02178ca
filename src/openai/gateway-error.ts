import { type ErrorCode, errorCodes } from './error-codes.ts'

/** A fault with an answer for the client. `cause` goes to the log and never leaves the gateway. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  /** The request parameter or header that is wrong, as OpenAI's errors name it. */
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

  /** Whatever was thrown, as a GatewayError: an unknown fault is an `internal_error` that tells the client nothing more. */
  static from(thrown: unknown): GatewayError {
    return thrown instanceof GatewayError ? thrown : new GatewayError('internal_error', { cause: thrown })
  }
}

/** An answer in OpenAI's error shape: `{"error":{message,type,param,code}}`. SDKs obey `x-should-retry`. */
export const toErrorAnswer = (
  error: GatewayError,
): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown } => {
  const { status, type, retry } = errorCodes[error.code]
  return {
    status,
    headers: { 'x-should-retry': retry ? 'true' : 'false', ...(retry ? { 'retry-after': '1' } : {}), ...error.headers },
    body: { error: { message: error.message, type, param: error.param ?? null, code: error.code } },
  }
}
