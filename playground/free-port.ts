import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'

/** The ports that the system gives to outgoing connections by itself (Linux: ip(7)). */
export type OutgoingPorts = readonly [first: number, last: number]

/** Even ones: the odd port above each of them is its claim. */
const candidates: readonly number[] = Array.from({ length: 27_768 }, (_, index) => 10_000 + 2 * index)
/** With fewer candidates beside the outgoing ports, all of them are tried. */
const leastChoice = 500
const maxTries = 100

/**
 * A TCP port of 127.0.0.1 on which nothing listens. No other call gets it while this process runs, in this process or in
 * another: until its end the process listens on the port above it. No outgoing connection gets it either, where the system
 * leaves room beside those.
 * @throws Error when a hundred ports in turn are in use
 */
export const freePort = async (outgoing?: OutgoingPorts): Promise<number> => {
  const [first, last] = outgoing ?? (await outgoingPorts())
  const calm = candidates.filter((port) => port + 1 < first || port > last)
  const choice = calm.length < leastChoice ? candidates : calm
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = choice[randomInt(choice.length)] ?? 0
    const claim = await listen({ port: port + 1 })
    if (claim === undefined) continue
    if (await isPortFree({ port })) return port
    claim.close()
  }
  throw new Error('there is no free port')
}

/** Several of them. */
export const freePorts = (count: number, outgoing?: OutgoingPorts): Promise<readonly number[]> =>
  Promise.all(Array.from({ length: count }, () => freePort(outgoing)))

/** Whether this process could listen there now. Default host: 127.0.0.1. */
export const isPortFree = async (at: { readonly port: number; readonly host?: string }): Promise<boolean> => {
  const server = await listen(at)
  server?.close()
  return server !== undefined
}

/** Linux' default where the system does not tell. */
const outgoingPorts = async (): Promise<OutgoingPorts> => {
  const text = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '32768 60999')
  const [first = 0, last = 0] = text.trim().split(/\s+/).map(Number)
  return [first, last]
}

/** A server that accepts no connection and keeps no process alive. Undefined when something else listens there. */
const listen = async ({ port, host = '127.0.0.1' }: { port: number; host?: string }): Promise<Server | undefined> => {
  const server = createServer().listen({ host, port, exclusive: true }).unref()
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
