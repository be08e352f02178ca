import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { PodAddress, PodSource } from './pod.ts'
import { createPodMonitor, type PodMonitorOptions } from './pod-monitor.ts'
import { createPodProbe } from './pod-probe.ts'

/**
 * The pods of a fixed list. A host name is resolved once, at the start, since Envoy knows its pods by address. Each is ready once its health check answers, and out after two failed
 * checks or when a turn saw it fail.
 */
export const createStaticPodSource = (
  options: PodMonitorOptions & {
    readonly addresses: readonly PodAddress[]
    /** How long a health check may take, milliseconds. */
    readonly healthTimeoutMs: number
  },
): PodSource => {
  const monitor = createPodMonitor({ ...options, probe: createPodProbe({ deadlineMs: options.healthTimeoutMs }) })
  return {
    ...monitor,
    start: async () => monitor.watch([...new Set(await Promise.all(options.addresses.map(toAddress)))]),
  }
}

/** IPv4 first, as in Envoy's clusters. A name that cannot be resolved stays, and its pod is never ready. */
const toAddress = async (address: PodAddress): Promise<PodAddress> => {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0) return address
  const found = await lookup(host, { order: 'ipv4first' }).catch(() => undefined)
  if (found === undefined) return address
  return `${found.family === 6 ? `[${found.address}]` : found.address}${address.slice(colon)}`
}
