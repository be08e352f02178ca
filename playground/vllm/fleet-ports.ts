import { freePorts, isPortFree } from '../free-port.ts'
import type { Environment } from '../run-command.ts'

/** Ports of 127.0.0.1, by pod where there are several. */
export interface FleetPorts {
  /** vLLM's OpenAI interface. */
  readonly pods: readonly number[]
  /** HTTP of the pods' LMCache servers. */
  readonly lmcache: readonly number[]
  /** What vLLM and its LMCache server talk over. */
  readonly lmcacheQueues: readonly number[]
  readonly coordinator: number
}

export type FleetPortsOutcome =
  | { readonly kind: 'valid'; readonly ports: FleetPorts }
  | { readonly kind: 'invalid'; readonly message: string }

/** Free ports for so many pods. */
export const freeFleetPorts = async (pods: number): Promise<FleetPorts> => {
  const [coordinator = 0, ...rest] = await freePorts(1 + 3 * pods)
  return {
    coordinator,
    pods: rest.slice(0, pods),
    lmcache: rest.slice(pods, 2 * pods),
    lmcacheQueues: rest.slice(2 * pods),
  }
}

/** `FLEET_POD_PORTS` (8101,8102), `FLEET_LMCACHE_PORTS` (9101,9102) and `FLEET_COORDINATOR_PORT` (9200); the queues get free ones. */
export const readFleetPorts = async (env: Environment): Promise<FleetPortsOutcome> => {
  const pods = portList(env['FLEET_POD_PORTS'] || '8101,8102')
  const lmcache = portList(env['FLEET_LMCACHE_PORTS'] || '9101,9102')
  const [coordinator, ...others] = portList(env['FLEET_COORDINATOR_PORT'] || '9200') ?? []
  if (pods === undefined) return invalid('FLEET_POD_PORTS must look like 8101,8102.')
  if (lmcache === undefined) return invalid('FLEET_LMCACHE_PORTS must look like 9101,9102.')
  if (coordinator === undefined || others.length > 0) return invalid('FLEET_COORDINATOR_PORT must be one port.')
  if (pods.length !== lmcache.length) return invalid('FLEET_POD_PORTS and FLEET_LMCACHE_PORTS must be equally many.')
  const all = [...pods, ...lmcache, coordinator]
  if (new Set(all).size < all.length)
    return invalid('FLEET_POD_PORTS, FLEET_LMCACHE_PORTS and FLEET_COORDINATOR_PORT share a port.')
  return { kind: 'valid', ports: { pods, lmcache, coordinator, lmcacheQueues: await freePorts(pods.length) } }
}

/** Those of the ports that something listens on already. */
export const takenPorts = async (ports: FleetPorts): Promise<readonly number[]> => {
  const wanted = [...ports.pods, ...ports.lmcache, ...ports.lmcacheQueues, ports.coordinator]
  const free = await Promise.all(wanted.map((port) => isPortFree({ port })))
  return wanted.filter((_, index) => free[index] === false)
}

const portList = (text: string): readonly number[] | undefined => {
  const ports = text.split(',').map((part) => (/^\s*[1-9]\d{0,4}\s*$/.test(part) ? Number(part) : Number.NaN))
  return ports.every((port) => port <= 65_535) ? ports : undefined
}

const invalid = (message: string): FleetPortsOutcome => ({ kind: 'invalid', message })
