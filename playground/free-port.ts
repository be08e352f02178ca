import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

/** The ports that the system gives to outgoing connections by itself (Linux: ip(7)). */
export type OutgoingPorts = readonly [first: number, last: number]

const [firstPort, lastPort] = [10_000, 65_535]
/** With fewer ports to choose from, the system's own choice is better. */
const leastChoice = 1000
const maxTries = 100

/** Ports that this process gave out: their servers may not listen yet. */
const given = new Set<number>()

/** A TCP port of 127.0.0.1 on which nothing listens, and that this process did not give out before. */
export const freePort = async (): Promise<number> => (await freePorts(1))[0] ?? 0

/**
 * Several different free TCP ports of 127.0.0.1. Another program can take one before its server starts; no outgoing
 * connection can, where the system tells which ports it gives to those.
 */
export const freePorts = async (count: number, outgoing?: OutgoingPorts): Promise<readonly number[]> => {
  const avoided = outgoing ?? (await outgoingPorts())
  const ports: number[] = []
  for (let tries = 0; ports.length < count; tries += 1) {
    if (tries > maxTries + count) throw new Error('there is no free port')
    const port = await portIfFree(candidate(avoided))
    if (port === undefined || given.has(port)) continue
    given.add(port)
    ports.push(port)
  }
  return ports
}

/** All ports where the system does not tell. */
const outgoingPorts = async (): Promise<OutgoingPorts> => {
  const text = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '')
  const [first, last] = text.trim().split(/\s+/).map(Number)
  return first !== undefined && last !== undefined ? [first, last] : [firstPort, lastPort]
}

/** A port to try; 0 leaves the choice to the system. */
const candidate = ([first, last]: OutgoingPorts): number => {
  const below = Math.max(0, first - firstPort)
  const above = Math.max(0, lastPort - last)
  if (below + above < leastChoice) return 0
  const at = randomInt(below + above)
  return at < below ? firstPort + at : last + 1 + (at - below)
}

/** Undefined when something listens there; 0 asks the system for a port. */
const portIfFree = (port: number, host = '127.0.0.1'): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : undefined))
    })
  })

/** Whether this process could listen there now. Default host: 127.0.0.1. */
export const isPortFree = async ({ port, host }: { readonly port: number; readonly host?: string }): Promise<boolean> =>
  (await portIfFree(port, host)) !== undefined
