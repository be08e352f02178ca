import { readFileSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { defaultPoolName, type PoolConfig } from '../config/pools.ts'
import type { EngineAccess } from '../engines/engine-http.ts'
import { createDnsPodSource } from '../routing/dns-pod-source.ts'
import { createKubernetesPodSource } from '../routing/kubernetes/kubernetes-pod-source.ts'
import type { PodSource } from '../routing/pod.ts'
import type { PodChange } from '../routing/pod-monitor.ts'
import { createStaticPodSource } from '../routing/static-pod-source.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Warnings } from '../telemetry/warnings.ts'

/**
 * How the configuration says that the engines of a pool are reached.
 * @throws when the file with the authorities cannot be read
 */
export const engineAccessOf = ({ https, caFile, serverName, apiKey }: PoolConfig): EngineAccess => ({
  apiKey,
  tls: https ? { ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'), serverName } : undefined,
})

/**
 * The pods of a pool: from a list, from DNS or from Kubernetes.
 * @throws when there is no way to the Kubernetes API server
 */
export const createPodSource = async (
  { name, dns, kubernetes, models }: PoolConfig,
  { routing, turns }: Pick<Config, 'routing' | 'turns'>,
  parts: {
    readonly access: EngineAccess
    readonly log: Logger
    readonly metrics: Pick<Metrics, 'forget'>
    readonly warnings: Warnings
    readonly onChange: (change: PodChange) => void
    /** The list that holds now, where the pods are listed. */
    readonly addresses: () => readonly string[]
  },
): Promise<PodSource> => {
  const { log, metrics, warnings } = parts
  const options = {
    healthIntervalMs: routing.healthIntervalMs,
    healthTimeoutMs: routing.healthTimeoutMs,
    turnLeaseMs: turns.leaseSeconds * 1000,
    access: parts.access,
    models,
    onChange: (change: PodChange) => {
      parts.onChange(change)
      switch (change.kind) {
        case 'unauthorized':
          warnings.raise('engine_unauthorized', change.address, unauthorizedText(name, change))
          return
        case 'authorized':
          warnings.clear('engine_unauthorized', change.address)
          return
        case 'list-stale':
          warnings.raise('kubernetes_list_stale', `${name} ${change.name}`, staleText(name, change))
          return
        case 'list-current':
          warnings.clear('kubernetes_list_stale', `${name} ${change.name}`)
          return
        case 'failing':
          warnings.raiseOutage('engine_unavailable', change.address, change.reason)
          return
        case 'ready':
          if (warnings.clear('engine_unavailable', change.address)) return
          break
        case 'removed':
          warnings.forget(change.address)
          void metrics.forget('pod', change.address)
          break
        case 'resolve-failed':
          log.warn('the name of the pods cannot be resolved; the known pods stay', { ...change })
          return
        case 'added':
          break
      }
      log.info('pod', { ...change })
    },
  }
  if (kubernetes !== undefined) return createKubernetesPodSource({ ...options, ...kubernetes })
  return dns === undefined
    ? createStaticPodSource({ ...options, addresses: parts.addresses })
    : createDnsPodSource({ ...options, ...dns })
}

const staleText = (pool: string, list: { readonly name: string; readonly reason: string }): string =>
  `The pool ${pool} keeps the pods that it knows, since Kubernetes does not list its ${list.name} (${list.reason}): check the API server and the role of the gateway`

const unauthorizedText = (
  pool: string,
  { address, reason }: { readonly address: string; readonly reason: string },
): string => {
  const option = pool === defaultPoolName ? 'engines.apiKey' : `apiKey of the pool ${pool}`
  return `The engine ${address} refuses the gateway's key (${reason}), so that its KV is not loaded or stored: set ${option}`
}
