/** An answer that says what is wrong, in the form that OpenAI's clients understand. */
export interface OpenAiError {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: 'invalid_request_error' | 'server_error'
    readonly param: string | null
    readonly code: string | null
  }
}

interface ErrorDetails {
  readonly status?: number
  /** The field of the body. */
  readonly param?: string
  /** A word for programs. */
  readonly code?: string
}

/** The client sent something that cannot be served: status 400 unless `details` say otherwise. */
export const invalidRequest = (message: string, details: ErrorDetails = {}): OpenAiError => {
  const { status = 400, param = null, code = null } = details
  return { status, error: { message, type: 'invalid_request_error', param, code } }
}

/** The engine cannot serve it now: status 503 unless `details` say otherwise. */
export const serverError = (message: string, details: ErrorDetails = {}): OpenAiError => {
  const { status = 503, param = null, code = null } = details
  return { status, error: { message, type: 'server_error', param, code } }
}
