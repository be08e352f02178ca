import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { errorReason } from './error-reason.ts'
import { pause } from './pause.ts'
import type { PodAddress, PodSource } from './pod.ts'
import { createPodMonitor, type PodMonitorOptions } from './pod-monitor.ts'
import { createPodProbe } from './pod-probe.ts'

/** All addresses of a name. */
export type ResolveName = (name: string) => Promise<readonly LookupAddress[]>

/**
 * The pods behind a DNS name, such as a headless service of Kubernetes: one for each address, all on one port. The name is looked up
 * anew by the interval. Of a name with addresses of both families, only those of IPv4 count, since they mean the same pods. While the
 * name cannot be resolved the known pods stay, under their health checks.
 */
export const createDnsPodSource = (
  options: PodMonitorOptions & {
    readonly name: string
    readonly port: number
    /** From the end of one look-up to the start of the next, milliseconds. */
    readonly refreshIntervalMs: number
    /** How long a look-up may take, milliseconds. */
    readonly lookupTimeoutMs: number
    /** How long a health check may take, milliseconds. */
    readonly healthTimeoutMs: number
    /** The system's resolver by default, which knows /etc/hosts and search domains. */
    readonly resolve?: ResolveName
  },
): PodSource => {
  const resolve = options.resolve ?? ((name: string) => lookup(name, { all: true }))
  const monitor = createPodMonitor({ ...options, probe: createPodProbe({ deadlineMs: options.healthTimeoutMs }) })
  const stopping = new AbortController()
  let resolvable = true
  let loop: Promise<void> | undefined

  const refresh = async (): Promise<void> => {
    const found = await resolveInTime(resolve, options.name, {
      timeoutMs: options.lookupTimeoutMs,
      signal: stopping.signal,
    })
    if (stopping.signal.aborted) return
    if (found.kind === 'resolved') {
      resolvable = true
      await monitor.watch(toPodAddresses(found.addresses, options.port))
    } else if (resolvable) {
      resolvable = false
      options.onChange({ kind: 'resolve-failed', name: options.name, reason: found.reason })
    }
  }

  const refreshFromNowOn = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await pause(options.refreshIntervalMs, stopping.signal)
      if (!stopping.signal.aborted) await refresh()
    }
  }

  return {
    ...monitor,
    start: async () => {
      const first = refresh()
      loop = first.then(refreshFromNowOn)
      await first
    },
    stop: async () => {
      stopping.abort()
      await monitor.stop()
      await loop
    },
  }
}

/** Sorted, so that the order of the pods does not change with every answer. */
const toPodAddresses = (found: readonly LookupAddress[], port: number): readonly PodAddress[] => {
  const ipv4 = found.filter(({ family }) => family === 4)
  const hosts = ipv4.length > 0 ? ipv4.map(({ address }) => address) : found.map(({ address }) => `[${address}]`)
  return hosts.sort().map((host) => `${host}:${port}`)
}

type ResolveOutcome =
  | { readonly kind: 'resolved'; readonly addresses: readonly LookupAddress[] }
  | { readonly kind: 'failed'; readonly reason: string }

/** A look-up cannot be called off, so one that is late is left alone. */
const resolveInTime = async (
  resolve: ResolveName,
  name: string,
  limits: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ResolveOutcome> => {
  const settled = new AbortController()
  const settle = (): void => settled.abort()
  limits.signal.addEventListener('abort', settle, { once: true })
  if (limits.signal.aborted) settle()
  const late = pause(limits.timeoutMs, settled.signal).then(
    (): ResolveOutcome => ({ kind: 'failed', reason: `no answer within ${limits.timeoutMs} ms` }),
  )
  const answer = resolve(name).then(
    (addresses): ResolveOutcome => ({ kind: 'resolved', addresses }),
    (error: unknown): ResolveOutcome => ({ kind: 'failed', reason: errorReason(error) }),
  )
  try {
    return await Promise.race([answer, late])
  } finally {
    limits.signal.removeEventListener('abort', settle)
    settle()
  }
}
