import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { freePort } from '../../../playground/free-port.ts'

/** One call as a server of the fleet received it. */
export interface SimCall {
  readonly server: string
  readonly method: string
  /** Without its query. */
  readonly path: string
}

/** What goes wrong with a call. */
export type SimFault =
  /** It is accepted and never answered. */
  | 'freeze'
  /** 500, and nothing was done. */
  | 'fail'
  /** The connection ends before anything was done. */
  | 'cut'
  /** It is done, and the connection ends before the answer. */
  | 'lose-answer'
  /** 200 with this text, and nothing was done. */
  | { readonly nonsense: string }

export interface SimRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  /** Parsed JSON; undefined where there is none. */
  readonly body: unknown
}

export interface SimReply {
  readonly status: number
  /** A text goes out as it is, anything else as JSON. */
  readonly body: unknown
}

export interface SimServer {
  /** `host:port`; the same after a stop and a start. */
  readonly address: string
  readonly port: number
  /** Closes the port and every connection. */
  stop(): Promise<void>
  start(): Promise<void>
}

export interface SimServerOptions {
  readonly name: string
  /** Sees every call first. */
  readonly intercept: (call: SimCall) => SimFault | undefined
  readonly handle: (request: SimRequest) => Promise<SimReply> | SimReply
}

export const notFound: SimReply = { status: 404, body: { detail: 'Not Found' } }

/** A server on a free port of 127.0.0.1 whose calls can be made to go wrong. */
export const startSimServer = async (options: SimServerOptions): Promise<SimServer> => {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://fleet')
    const method = request.method ?? 'GET'
    const fault = options.intercept({ server: options.name, method, path: url.pathname })
    if (fault === 'freeze') return
    const body = await readBody(request)
    if (fault === 'cut') return void response.destroy()
    if (fault === 'fail') return send(response, { status: 500, body: 'Internal Server Error' })
    if (typeof fault === 'object') return send(response, { status: 200, body: fault.nonsense })
    const { pathname: path, searchParams: query } = url
    const reply = await options.handle({ method, path, query, headers: request.headers, body })
    if (fault === 'lose-answer') response.destroy()
    else send(response, reply)
  }
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  const port = await freePort()
  const listen = async (): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen()
  return {
    address: `127.0.0.1:${port}`,
    port,
    start: async () => {
      if (!server.listening) await listen()
    },
    stop: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  const body = await text(request)
  return body === '' ? undefined : JSON.parse(body)
}

const send = (response: ServerResponse, { status, body }: SimReply): void => {
  if (typeof body === 'string') {
    response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
    return
  }
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
