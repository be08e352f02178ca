import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { within } from '../async/deadline.ts'
import { createLoop } from '../async/loop.ts'
import { addressOf, type PodAddress, type PodSource } from './pod.ts'
import { createPodMonitor, type PodFacts, type PodMonitorOptions, renewedBy } from './pod-monitor.ts'
import { errorReason } from './pod-probe.ts'

const unresolved: PodFacts = { isServing: false, isUnchecked: true }

/**
 * The pods of a list, which may change. Each is ready while its health check succeeds, and no turn has reported a failure since. A
 * host name is resolved once, since Envoy knows its pods by address. One that cannot be resolved is listed, gets no
 * turns, and is looked up again at each interval of the health checks.
 */
export const createStaticPodSource = (
  options: PodMonitorOptions & {
    /** Read at each interval of the health checks. */
    readonly addresses: () => readonly PodAddress[]
    /** Default: the system's resolver, IPv4 first, as in Envoy's clusters. */
    readonly resolve?: (host: string) => Promise<LookupAddress>
    /** Limit of one look-up, milliseconds. Default: 10 s. */
    readonly lookupTimeoutMs?: number
  },
): PodSource => {
  const { onChange, lookupTimeoutMs = 10_000 } = options
  const { resolve = (host) => lookup(host, { order: 'ipv4first' }) } = options
  const monitor = createPodMonitor(options)
  /** By the address in the list: what it was resolved to. */
  let found: ReadonlyMap<PodAddress, PodAddress | undefined> = new Map()

  const lookUp = async (address: PodAddress, stopping: AbortSignal): Promise<PodAddress | undefined> => {
    const colon = address.lastIndexOf(':')
    const name = address.slice(0, colon).replace(/^\[|\]$/g, '')
    try {
      const answer = await within(lookupTimeoutMs, resolve(name), stopping)
      if (answer === undefined) throw new Error(`no answer within ${lookupTimeoutMs} ms`)
      return addressOf(answer.address, Number(address.slice(colon + 1)))
    } catch (error) {
      if (!found.has(address) && !stopping.aborted)
        onChange({ kind: 'resolve-failed', name, reason: errorReason(error) })
      return undefined
    }
  }

  const resolveRest = async (stopping: AbortSignal): Promise<void> => {
    const addresses = options.addresses()
    const isKnown = addresses.length === found.size && addresses.every((address) => found.get(address) !== undefined)
    if (isKnown) return
    const resolved = await Promise.all(
      addresses.map(async (address) => [address, found.get(address) ?? (await lookUp(address, stopping))] as const),
    )
    if (stopping.aborted) return
    found = new Map(resolved)
    const watched = resolved.map(([address, known]) => known ?? address)
    const names = resolved.flatMap(([address, known]) => (known === undefined ? [address] : []))
    await monitor.watch(watched, new Map(names.map((name) => [name, unresolved])))
  }

  return renewedBy(createLoop({ work: resolveRest, intervalMs: options.healthIntervalMs }), monitor)
}
