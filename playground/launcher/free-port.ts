import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'

/** A TCP port of 127.0.0.1 that nobody listens on. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1)
  if (port === undefined) throw new Error('no free port')
  return port
}

/** The first and the last port that the system gives to outgoing connections by itself (Linux: ip(7)); undefined where it does not tell. */
export type OutgoingPorts = readonly [first: number, last: number] | undefined

const outgoingPortsFile = '/proc/sys/net/ipv4/ip_local_port_range'
const firstPort = 10_000
const lastPort = 65_535
/** Fewer would soon be taken. */
const leastChoice = 1000
const maxTries = 100

/**
 * Several different free TCP ports of 127.0.0.1. They are held open together and closed before they are returned; another program can still take one
 * before its server starts. No outgoing connection can: where the system tells which ports it gives to those, none of them is taken.
 */
export async function freePorts(count: number, outgoing?: OutgoingPorts): Promise<readonly number[]> {
  const candidate = candidates(outgoing ?? (await outgoingPorts()))
  const servers: Server[] = []
  try {
    const ports: number[] = []
    for (let index = 0; index < count; index += 1) {
      const { server, port } = await listen(candidate)
      servers.push(server)
      ports.push(port)
    }
    return ports
  } finally {
    await Promise.all(servers.map(close))
  }
}

const outgoingPorts = async (): Promise<OutgoingPorts> => {
  let text: string
  try {
    text = await readFile(outgoingPortsFile, 'utf8')
  } catch {
    return undefined
  }
  const [first = Number.NaN, last = Number.NaN] = text.trim().split(/\s+/).map(Number)
  return Number.isInteger(first) && Number.isInteger(last) ? [first, last] : undefined
}

/** Makes ports to try; 0 leaves the choice to the system. */
const candidates = (outgoing: OutgoingPorts): (() => number) => {
  if (outgoing === undefined) return () => 0
  const [first, last] = outgoing
  const below = Math.max(0, first - firstPort)
  const above = Math.max(0, lastPort - last)
  if (below + above < leastChoice) return () => 0
  return () => {
    const at = randomInt(below + above)
    return at < below ? firstPort + at : last + 1 + (at - below)
  }
}

const listen = async (candidate: () => number): Promise<{ readonly server: Server; readonly port: number }> => {
  for (let tries = 1; ; tries += 1) {
    const server = createServer()
    try {
      return { server, port: await listenOn(server, candidate()) }
    } catch (error) {
      if (tries === maxTries) throw error
    }
  }
}

function listenOn(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      const address = server.address()
      if (typeof address === 'object' && address !== null) resolve(address.port)
      else reject(new Error('the server has no TCP address'))
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
