import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { SocketAddress } from 'node:net'
import { untilAborted } from '../async/deadline.ts'
import { createLoop } from '../async/loop.ts'
import type { PodAddress, PodSource } from './pod.ts'
import { createPodMonitor, type PodFacts, type PodMonitorOptions, renewedBy } from './pod-monitor.ts'
import { errorReason } from './pod-probe.ts'

const unresolved: PodFacts = { isServing: false, isUnchecked: true }

/**
 * The pods of a fixed list. Each is ready while its health check succeeds, and no turn has reported a failure since. A
 * host name is resolved once, since Envoy knows its pods by address. One that cannot be resolved is listed, gets no
 * turns, and is looked up again at each interval of the health checks.
 */
export const createStaticPodSource = (
  options: PodMonitorOptions & {
    readonly addresses: readonly PodAddress[]
    /** Default: the system's resolver, IPv4 first, as in Envoy's clusters. */
    readonly resolve?: (host: string) => Promise<LookupAddress>
  },
): PodSource => {
  const { addresses, onChange, resolve = (host) => lookup(host, { order: 'ipv4first' }) } = options
  const monitor = createPodMonitor(options)
  let found: readonly (PodAddress | undefined)[] = []

  /** IPv6 as Envoy writes it. The port stays as it is. */
  const lookUp = async (address: PodAddress): Promise<PodAddress | undefined> => {
    const colon = address.lastIndexOf(':')
    const name = address.slice(0, colon).replace(/^\[|\]$/g, '')
    try {
      const answer = await resolve(name)
      const isIpv6 = answer.family === 6
      const { address: host } = new SocketAddress({ ...answer, family: isIpv6 ? 'ipv6' : 'ipv4' })
      return `${isIpv6 ? `[${host}]` : host}${address.slice(colon)}`
    } catch (error) {
      if (found.length === 0) onChange({ kind: 'resolve-failed', name, reason: errorReason(error) })
      return undefined
    }
  }

  const resolveRest = async (stopping: AbortSignal): Promise<void> => {
    if (found.length > 0 && !found.includes(undefined)) return
    const lookUps = addresses.map(async (address, index) => found[index] ?? lookUp(address))
    found = await untilAborted(Promise.all(lookUps), stopping, () => found)
    if (stopping.aborted) return
    const watched = addresses.map((address, index) => found[index] ?? address)
    const names = watched.filter((address) => !found.includes(address))
    await monitor.watch(watched, new Map(names.map((name) => [name, unresolved])))
  }

  return renewedBy(createLoop({ work: resolveRest, intervalMs: options.healthIntervalMs }), monitor)
}
