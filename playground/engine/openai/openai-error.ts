// Errors in the form that OpenAI's clients understand.

/** An answer that says what is wrong. */
export interface OpenAiError {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: 'invalid_request_error' | 'server_error'
    readonly param: string | null
    readonly code: string | null
  }
}

/** Where the fault lies. */
export interface ErrorDetails {
  /** 400 if not given. */
  readonly status?: number
  /** The field of the body. */
  readonly param?: string
  /** A word for programs. */
  readonly code?: string
}

/** The client sent something that cannot be served. */
export function invalidRequest(message: string, details: ErrorDetails = {}): OpenAiError {
  const { status = 400, param = null, code = null } = details
  return { status, error: { message, type: 'invalid_request_error', param, code } }
}

/** The engine cannot serve it now. */
export function serverError(message: string, details: ErrorDetails = {}): OpenAiError {
  const { status = 500, param = null, code = null } = details
  return { status, error: { message, type: 'server_error', param, code } }
}
