import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

const maxTries = 100

/**
 * A TCP port of 127.0.0.1 on which nothing listens. No other call gets it while this process runs, in this process or
 * in another: until its end the process listens on the port above it.
 * @throws Error when a hundred ports in turn are in use
 */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < maxTries; tries += 1) {
    // Below those that Linux and macOS give to outgoing connections, and above 10080, which `fetch` refuses ("bad port",
    // https://fetch.spec.whatwg.org/#port-blocking). Even: the odd port above is its claim.
    const port = 2 * randomInt(5041, 16_384)
    const claim = await listen({ port: port + 1 })
    if (claim === undefined) continue
    if (await isPortFree({ port })) return port
    claim.close()
  }
  throw new Error('there is no free port')
}

/** Several of them. */
export const freePorts = (count: number): Promise<readonly number[]> =>
  Promise.all(Array.from({ length: count }, freePort))

/** Whether this process could listen there now. Default host: 127.0.0.1. */
export const isPortFree = async (at: { readonly port: number; readonly host?: string }): Promise<boolean> => {
  const server = await listen(at)
  server?.close()
  return server !== undefined
}

/** A server that accepts no connection and keeps no process alive. Undefined when something else listens there. */
const listen = async ({ port, host = '127.0.0.1' }: { port: number; host?: string }): Promise<Server | undefined> => {
  const server = createServer((socket) => socket.destroy())
    .listen({ host, port, exclusive: true })
    .unref()
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
