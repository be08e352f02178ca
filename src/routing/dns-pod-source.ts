import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { within } from '../async/deadline.ts'
import { createLoop } from '../async/loop.ts'
import { addressOf, type PodAddress, type PodSource } from './pod.ts'
import { createPodMonitor, type PodMonitorOptions, renewedBy } from './pod-monitor.ts'
import { errorReason } from './pod-probe.ts'

/** All addresses of a name. */
export type ResolveName = (name: string) => Promise<readonly LookupAddress[]>

/**
 * The pods behind a DNS name, such as a headless service of Kubernetes: one for each address, all on one port. The name
 * is resolved again at each interval. If it has addresses of both families, only those of IPv4 count, since they are
 * the same pods. While the name cannot be resolved the known pods stay, under their health checks.
 */
export const createDnsPodSource = (
  options: PodMonitorOptions & {
    readonly name: string
    readonly port: number
    /** From the start of one look-up to the start of the next, milliseconds. */
    readonly refreshIntervalMs: number
    /** Limit of one look-up, milliseconds. */
    readonly lookupTimeoutMs: number
    /** Default: the system's resolver, which knows /etc/hosts and search domains. */
    readonly resolve?: ResolveName | undefined
  },
): PodSource => {
  const { name, lookupTimeoutMs, resolve = (host) => lookup(host, { all: true }) } = options
  const monitor = createPodMonitor(options)
  let isResolvable = true

  const refresh = async (stopping: AbortSignal): Promise<void> => {
    try {
      // A look-up cannot be cancelled; the result of a late one is ignored.
      const found = await within(lookupTimeoutMs, resolve(name), stopping)
      if (found === undefined) throw new Error(`no answer within ${lookupTimeoutMs} ms`)
      isResolvable = true
      if (!stopping.aborted) await monitor.watch(toPodAddresses(found, options.port))
    } catch (error) {
      if (isResolvable && !stopping.aborted) {
        options.onChange({ kind: 'resolve-failed', name, reason: errorReason(error) })
      }
      isResolvable = false
    }
  }

  return renewedBy(createLoop({ work: refresh, intervalMs: options.refreshIntervalMs }), monitor)
}

/** Sorted, so that the order of the pods does not change with every answer. */
const toPodAddresses = (found: readonly LookupAddress[], port: number): readonly PodAddress[] => {
  const ipv4 = found.filter(({ family }) => family === 4)
  return (ipv4.length > 0 ? ipv4 : found).map(({ address }) => addressOf(address, port)).sort()
}
