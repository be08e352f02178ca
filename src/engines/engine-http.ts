import { Agent, request } from 'undici'

/** How engines are reached. Default: plain HTTP, without a credential. */
export interface EngineAccess {
  /** With it, calls use HTTPS. Defaults: Node.js's authorities (PEM); each engine's host as its certificate's name. */
  readonly tls?: { readonly ca?: string | undefined; readonly serverName?: string | undefined } | undefined
  /** Sent as `Authorization: Bearer`. Never logged. */
  readonly apiKey?: string | undefined
}

/** What became of one call to an engine. */
export type EngineReply =
  | { readonly kind: 'answered'; readonly status: number; readonly text: string }
  /** No connection was made: the engine never saw the call. */
  | { readonly kind: 'unsent'; readonly cause: unknown }
  /** The call may have reached the engine, and may still take effect. */
  | { readonly kind: 'broken'; readonly cause: unknown }

export interface EngineCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `host:port` */
  readonly pod: string
  readonly path: string
  /** Sent as JSON; bytes are JSON already. */
  readonly body?: unknown
  readonly signal: AbortSignal
}

/** The one HTTP client towards engines, with a small number of connections to each. */
export interface EngineHttp {
  call(call: EngineCall): Promise<EngineReply>
  /** Ends every call that is under way. */
  close(): Promise<void>
}

const defaultMaxAnswerBytes = 4 * 1024 * 1024
/**
 * llama-server has a few threads for HTTP (`--threads-http`), and an idle connection holds one for 5 s: other requests,
 * completions included, wait for it. Calls of one turn share a connection all the same.
 */
const keepAliveMs = 100
/** With TLS, connections cost more than threads. It ends before llama-server's 5 s: no call meets one that closes. */
const tlsKeepAliveMs = 2_000

/** `access` is left out for servers that are no engines: no credential is sent to them. */
export const createEngineHttp = (options: {
  readonly callsPerPod: number
  readonly access?: EngineAccess | undefined
  /** A longer answer breaks the call. Default 4 MiB. */
  readonly maxAnswerBytes?: number
  /** W3C trace context of what runs. Default: calls carry none. */
  readonly traceparent?: (() => string | undefined) | undefined
}): EngineHttp => {
  const { maxAnswerBytes = defaultMaxAnswerBytes } = options
  const { tls, apiKey } = options.access ?? {}
  const scheme = tls === undefined ? 'http' : 'https'
  const authorization = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const headersOf = (body: unknown): Record<string, string> => {
    const traceparent = options.traceparent?.()
    return {
      ...authorization,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(traceparent === undefined ? {} : { traceparent }),
    }
  }
  const agent = new Agent({
    connections: options.callsPerPod,
    pipelining: 1,
    keepAliveTimeout: tls === undefined ? keepAliveMs : tlsKeepAliveMs,
    keepAliveMaxTimeout: tls === undefined ? keepAliveMs : tlsKeepAliveMs,
    // Deadlines come with each call's signal.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ca: tls?.ca, servername: tls?.serverName },
  })
  return {
    call: async ({ method, pod, path, body, signal }) => {
      try {
        const answer = await request(`${scheme}://${pod}${path}`, {
          dispatcher: agent,
          method,
          signal,
          // Else undici does not use a connection again after a DELETE with a body, as LMCache's interface asks for.
          reset: false,
          headers: headersOf(body),
          body: body === undefined ? null : body instanceof Uint8Array ? body : JSON.stringify(body),
        })
        return { kind: 'answered', status: answer.statusCode, text: await readText(answer.body, maxAnswerBytes) }
      } catch (cause) {
        return { kind: neverConnected(cause) ? 'unsent' : 'broken', cause }
      }
    },
    close: () => agent.destroy(),
  }
}

const readText = async (body: AsyncIterable<Buffer>, maxAnswerBytes: number): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) throw new Error(`the engine answered with more than ${maxAnswerBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const connectFaults: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether nothing was sent, since nothing listens there. */
export const neverConnected = (cause: unknown): boolean =>
  typeof cause === 'object' && cause !== null && 'code' in cause && connectFaults.has(cause.code)
