import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { untilAborted, withinLimit } from '../async/deadline.ts'
import { createLoop } from '../async/loop.ts'
import { addressOf, type PodAddress, type PodSource } from './pod.ts'
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
    /** Limit of one look-up, milliseconds. Default: 10 s. */
    readonly lookupTimeoutMs?: number
  },
): PodSource => {
  const { addresses, onChange, lookupTimeoutMs = 10_000 } = options
  const { resolve = (host) => lookup(host, { order: 'ipv4first' }) } = options
  const monitor = createPodMonitor(options)
  let found: readonly (PodAddress | undefined)[] = []

  const lookUp = async (address: PodAddress, stopping: AbortSignal): Promise<PodAddress | undefined> => {
    const colon = address.lastIndexOf(':')
    const name = address.slice(0, colon).replace(/^\[|\]$/g, '')
    try {
      const ask = (limit: AbortSignal) => untilAborted(resolve(name), limit, () => undefined)
      const answer = await withinLimit(lookupTimeoutMs, ask, stopping)
      if (answer === undefined) throw new Error(`no answer within ${lookupTimeoutMs} ms`)
      return addressOf(answer.address, Number(address.slice(colon + 1)))
    } catch (error) {
      if (found.length === 0 && !stopping.aborted)
        onChange({ kind: 'resolve-failed', name, reason: errorReason(error) })
      return undefined
    }
  }

  const resolveRest = async (stopping: AbortSignal): Promise<void> => {
    if (found.length > 0 && !found.includes(undefined)) return
    const lookUps = addresses.map(async (address, index) => found[index] ?? lookUp(address, stopping))
    found = await Promise.all(lookUps)
    if (stopping.aborted) return
    const watched = addresses.map((address, index) => found[index] ?? address)
    const names = watched.filter((address) => !found.includes(address))
    await monitor.watch(watched, new Map(names.map((name) => [name, unresolved])))
  }

  return renewedBy(createLoop({ work: resolveRest, intervalMs: options.healthIntervalMs }), monitor)
}
