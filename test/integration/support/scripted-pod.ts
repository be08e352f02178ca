import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { freePort } from '../../../playground/free-port.ts'
import type { PodReply, PodScript, RecordedRequest } from './pod-script.ts'
import { engineResponse } from './scripted-responses.ts'

/** An engine in the test's own process, whose responses are scripts. With `CONNECTOR=none`, or with `scriptedSlots`. */
export interface ScriptedPod {
  /** `127.0.0.1:8080`, for a stack's `pods`. */
  readonly address: string
  /** Every request but the gateway's checks of health, metrics and models, in their order. */
  requests(): readonly RecordedRequest[]
  /** Every byte that came over each connection, health checks included. */
  wire(): readonly Buffer[]
  /** The next requests get these scripts, one each. */
  next(...scripts: readonly PodScript[]): void
  /** What all others get. Default: a short response of the requested form. */
  otherwise(script: PodScript): void
  /** Result of health checks. Default: healthy. */
  setHealthy(isHealthy: boolean): void
  /** Closes the port and every connection. */
  stop(): Promise<void>
  /** Opens the port, always the same one. */
  start(): Promise<void>
}

/** Asked before the script; `false`: the request is not for it. */
export type RequestHandler = (request: RecordedRequest, reply: PodReply) => Promise<boolean> | boolean

/** A pod whose port is closed until it is started. */
export const createScriptedPod = (handler?: RequestHandler): ScriptedPod => {
  const recorded: RecordedRequest[] = []
  const connections: Buffer[][] = []
  const queue: PodScript[] = []
  let fallback: PodScript = engineResponse()
  let healthy = true

  const serve = async (request: RecordedRequest, reply: PodReply): Promise<void> => {
    if (request.path === '/health') return reply.json(healthy ? 200 : 503, {})
    if (request.path === '/metrics') return reply.json(404, {})
    if ((await handler?.(request, reply)) === true) return
    // Of the gateway's checks, which no Envoy forwards: the pod serves every model.
    if (request.path === '/v1/models' && !('x-forwarded-proto' in request.headers)) return reply.json(404, {})
    recorded.push(request)
    await (queue.shift() ?? fallback)(request, reply)
  }

  const server = createServer({ keepAliveTimeout: 0, maxHeaderSize: 128 * 1024 }, (incoming, response) => {
    const handle = async (): Promise<void> => {
      const { method = '', url: path = '', headers, rawHeaders } = incoming
      const bytes = await buffer(incoming)
      await serve({ method, path, headers, rawHeaders, bytes, body: bytes.toString() }, createReply(response))
    }
    // The client of a request that broke off is gone.
    handle().catch(() => response.destroy())
  })
  server.on('connection', (socket: Socket) => {
    const received: Buffer[] = []
    connections.push(received)
    socket.on('data', (bytes: Buffer) => void received.push(bytes))
  })
  let port = 0

  return {
    get address() {
      return `127.0.0.1:${port}`
    },
    requests: () => recorded,
    wire: () => connections.map((received) => Buffer.concat(received)),
    next: (...scripts) => void queue.push(...scripts),
    otherwise: (script) => {
      fallback = script
    },
    setHealthy: (isHealthy) => {
      healthy = isHealthy
    },
    stop: () =>
      new Promise((resolve) => {
        if (!server.listening) return resolve()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
    start: async () => {
      port ||= await freePort()
      server.listen({ port, host: '127.0.0.1', backlog: 4096 })
      await once(server, 'listening')
    },
  }
}

export const startScriptedPod = async (handler?: RequestHandler): Promise<ScriptedPod> => {
  const pod = createScriptedPod(handler)
  await pod.start()
  return pod
}

const createReply = (response: ServerResponse): PodReply => ({
  response,
  json: (status, value, headers = {}) => {
    const body = JSON.stringify(value)
    response
      .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers })
      .end(body)
  },
  write: (piece) => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write(piece)
  },
  end: () => void response.end(),
  reset: () => (response.socket as Socket | null)?.resetAndDestroy(),
  finished: new Promise((resolve) => {
    response.once('close', () => resolve(response.writableFinished))
  }),
})
