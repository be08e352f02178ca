import OpenAI from 'openai'

export const model = 'tiny-random'

/** The unmodified OpenAI SDK, as a user sets it up. */
export const openai = (
  url: string,
  options: { readonly apiKey?: string; readonly headers?: Record<string, string>; readonly maxRetries?: number } = {},
): OpenAI =>
  new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: options.apiKey ?? 'test-key',
    maxRetries: options.maxRetries ?? 0,
    ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
  })

/** One HTTP exchange, for what no SDK would send. */
export const call = async (
  url: string,
  request: {
    readonly method?: string
    readonly headers?: Record<string, string>
    readonly body?: unknown
    readonly rawBody?: string | Uint8Array<ArrayBuffer>
  } = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: unknown; readonly text: string }> => {
  const rawBody = request.rawBody ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
  const response = await fetch(url, {
    method: request.method ?? (rawBody === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: 'Bearer test-key',
      ...(rawBody === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(rawBody === undefined ? {} : { body: rawBody }),
    signal: AbortSignal.timeout(60_000),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parse(text) }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
