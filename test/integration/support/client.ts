export const model = 'tiny-random'

/** An HTTP response, read to its end. */
export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  /** Undefined: the text is no JSON. */
  readonly body: unknown
  readonly text: string
}

const jsonHeaders = { authorization: 'Bearer test-key', 'content-type': 'application/json' } as const

/** POSTs JSON. Resolves as soon as the headers of the response arrive. */
export const post = (
  url: string,
  body: unknown,
  options: { readonly headers?: Record<string, string>; readonly signal?: AbortSignal } = {},
): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { ...jsonHeaders, ...options.headers },
    body: JSON.stringify(body),
    signal: options.signal ?? AbortSignal.timeout(100_000),
  })

/** POSTs JSON, and closes the connection after `afterMs` if the response has not ended by then. */
export const postAndLeave = async (
  url: string,
  body: unknown,
  { headers, afterMs }: { readonly headers: Record<string, string>; readonly afterMs: number },
): Promise<void> => {
  const response = post(url, body, { headers, signal: AbortSignal.timeout(afterMs) })
  await response.then((whole) => whole.text()).catch(() => undefined)
}

/** One HTTP exchange, for what no SDK would send. */
export const call = async (
  url: string,
  request: {
    readonly method?: string
    readonly headers?: Record<string, string>
    readonly body?: unknown
    readonly rawBody?: string | Uint8Array<ArrayBuffer>
  } = {},
): Promise<HttpResponse> => {
  const rawBody = request.rawBody ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
  const response = await fetch(url, {
    method: request.method ?? (rawBody === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: jsonHeaders.authorization,
      ...(rawBody === undefined ? {} : { 'content-type': jsonHeaders['content-type'] }),
      ...request.headers,
    },
    ...(rawBody === undefined ? {} : { body: rawBody }),
    signal: AbortSignal.timeout(100_000),
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
