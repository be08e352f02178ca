import { readFileSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { defaultPoolName, type PoolConfig } from '../config/pools.ts'
import type { EngineAccess } from '../engines/engine-http.ts'
import { createDnsPodSource } from '../routing/dns-pod-source.ts'
import type { PodSource } from '../routing/pod.ts'
import { createStaticPodSource, type PodChange } from '../routing/pod-monitor.ts'
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

/** The pods of a pool, from a list or from DNS. */
export const createPodSource = (
  { name, pods, dns, models }: PoolConfig,
  { routing, turns }: Pick<Config, 'routing' | 'turns'>,
  parts: {
    readonly access: EngineAccess
    readonly log: Logger
    readonly metrics: Pick<Metrics, 'removePod'>
    readonly warnings: Warnings
    readonly onChange: (change: PodChange) => void
  },
): PodSource => {
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
        case 'removed':
          warnings.clear('engine_unauthorized', change.address)
          void metrics.removePod(change.address)
          break
        case 'added':
        case 'ready':
        case 'failing':
        case 'resolve-failed':
          break
      }
      log.info('pod', { ...change })
    },
  }
  return dns === undefined
    ? createStaticPodSource({ ...options, addresses: pods })
    : createDnsPodSource({ ...options, ...dns })
}

const unauthorizedText = (
  pool: string,
  { address, reason }: { readonly address: string; readonly reason: string },
): string => {
  const option = pool === defaultPoolName ? 'engines.apiKey' : `apiKey of the pool ${pool}`
  return `The engine ${address} refuses the gateway's key (${reason}), so that its KV is not loaded or stored: set ${option}`
}
