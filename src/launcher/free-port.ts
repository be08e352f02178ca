import { createServer, type Server } from 'node:net'

/** A TCP port of 127.0.0.1 that nobody listens on. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1)
  if (port === undefined) throw new Error('no free port')
  return port
}

/**
 * Several different free TCP ports of 127.0.0.1. They are held open together and closed before they are returned, so
 * the system does not hand one out twice; another program can still take one before its server starts.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers: Server[] = []
  try {
    const ports: number[] = []
    for (let index = 0; index < count; index += 1) {
      const server = createServer()
      servers.push(server)
      ports.push(await listen(server))
    }
    return ports
  } finally {
    await Promise.all(servers.map(close))
  }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port: 0, exclusive: true }, () => {
      const address = server.address()
      if (typeof address === 'object' && address !== null) resolve(address.port)
      else reject(new Error('the server has no TCP address'))
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
