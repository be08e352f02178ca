import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { serverError } from '../openai/openai-error.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { route } from './router.ts'
import type { Service } from './service.ts'

/** The engine's HTTP server. */
export interface EngineServer {
  /** Begins to listen. Until `serve` is called, everything is answered 503. Returns the port. */
  listen(address: { readonly host: string; readonly port: number }): Promise<number>
  /** Begins to serve. */
  serve(service: Service): void
  /** Stops listening and waits for the requests under way, aborting them once `signal` is aborted. */
  close(signal: AbortSignal): Promise<void>
}

/** Longer than proxies keep their idle connections, so that it is always they who close them. */
const keepAliveMs = 120_000

/** Creates the server. */
export function createEngineServer(log: Logger): EngineServer {
  const underWay = new Map<Exchange, Promise<void>>()
  let service: Service | undefined

  const server = createServer({ keepAliveTimeout: keepAliveMs }, (request, response) => {
    const exchange = createExchange(request, response)
    const handled = route(exchange, service)
      .catch((error: unknown) => {
        log.error({ err: error, path: exchange.path }, 'request failed')
        sendFault(exchange)
      })
      .finally(() => underWay.delete(exchange))
    underWay.set(exchange, handled)
  })

  return {
    listen: (address) => listen(server, address),
    serve(ready) {
      service = ready
    },
    async close(signal) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const stopAll = () => {
        for (const exchange of underWay.keys()) exchange.stop()
      }
      signal.addEventListener('abort', stopAll, { once: true })
      // A request may still arrive on a connection that was busy when the listening ended.
      while (underWay.size > 0) {
        if (signal.aborted) stopAll()
        await Promise.all(underWay.values())
      }
      signal.removeEventListener('abort', stopAll)
      server.closeAllConnections()
      await closed
    },
  }
}

function listen(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      const address: AddressInfo | string | null = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function sendFault(exchange: Exchange): void {
  if (exchange.clientIsGone()) return
  const fault = serverError('The engine failed.', { code: 'internal_error' })
  if (exchange.hasBegunAnswer()) {
    exchange.sendEvents([{ data: { error: fault.error } }])
    exchange.endEvents()
  } else {
    exchange.sendError(fault)
  }
}
