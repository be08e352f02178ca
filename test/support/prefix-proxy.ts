import { once } from 'node:events'
import { request as ask, createServer } from 'node:http'
import { freePort } from '../../playground/free-port.ts'

/** A reverse proxy as operators have it: it strips a prefix from the path, and may go. */
export interface PrefixProxy {
  /** `http://127.0.0.1:PORT/ops/gateway` */
  readonly url: string
  start(): Promise<void>
  /** Cuts every connection. */
  stop(): Promise<void>
}

const prefix = '/ops/gateway'

/** A proxy to this origin. It is not started yet. */
export const createPrefixProxy = async (target: string): Promise<PrefixProxy> => {
  const port = await freePort()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    if (!path.startsWith(`${prefix}/`)) {
      response.writeHead(404).end()
      return
    }
    const { method, headers } = request
    const onward = ask(new URL(path.slice(prefix.length), target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    start: async () => {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
