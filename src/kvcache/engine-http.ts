import { Agent, request } from 'undici'
import { errorCodeOf } from './error-code.ts'

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

/** HTTP towards engines, with a small number of connections to each. */
export interface EngineHttp {
  call(call: EngineCall): Promise<EngineReply>
  /** Ends every call that is under way. */
  close(): Promise<void>
}

const maxAnswerBytes = 4 * 1024 * 1024
/** llama-server closes an idle connection after 5 s; a call must not meet one that is just being closed. */
const keepAliveMs = 2_000

export const createEngineHttp = (options: { readonly callsPerPod: number }): EngineHttp => {
  const agent = new Agent({
    connections: options.callsPerPod,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    // Deadlines come with each call's signal.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    call: async ({ method, pod, path, body, signal }) => {
      try {
        const answer = await request(`http://${pod}${path}`, {
          dispatcher: agent,
          method,
          signal,
          // Else undici would not use a connection again after a DELETE with a body, which LMCache's interface asks for and reads.
          reset: false,
          ...(body === undefined
            ? {}
            : {
                body: body instanceof Uint8Array ? body : JSON.stringify(body),
                headers: { 'content-type': 'application/json' },
              }),
        })
        return { kind: 'answered', status: answer.statusCode, text: await readText(answer.body) }
      } catch (cause) {
        return { kind: neverConnected(cause) ? 'unsent' : 'broken', cause }
      }
    },
    close: () => agent.destroy(),
  }
}

const readText = async (body: AsyncIterable<Buffer>): Promise<string> => {
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

const neverConnected = (cause: unknown): boolean => connectFaults.has(errorCodeOf(cause))
