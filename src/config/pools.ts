import { isByIp } from '../options/values.ts'
import type { Config } from './config.ts'

/** The configuration of one pool, the default one or a further one. */
export type PoolConfig = Config['pools'][number]

/** Name of the pool of `routing.pods`, `routing.dns` or `routing.kubernetes`. */
export const defaultPoolName = 'default'

/** All pools: the default one, if it has pods, then those of `pools`. */
export const poolsOf = (config: Pick<Config, 'routing' | 'engines' | 'kv' | 'pools'>): readonly PoolConfig[] => {
  const { routing, engines, kv, pools } = config
  const { pods, dns, kubernetes, models } = routing
  const hasDefault = pods.length > 0 || dns !== undefined || kubernetes !== undefined
  return hasDefault ? [{ name: defaultPoolName, models, pods, dns, kubernetes, ...engines, kv }, ...pools] : pools
}

/** What moves the KV of a pool: one of the gateway's connectors, or the path of a module. */
export const connectorOf = ({
  connector,
  connectorModule,
}: Pick<Config['kv'], 'connector' | 'connectorModule'>): string => connectorModule ?? connector

/** The addresses of all pods in their order; undefined: DNS or Kubernetes decides on one. */
export const listedPods = (config: Parameters<typeof poolsOf>[0]): readonly string[] | undefined => {
  const lists = poolsOf(config).map(({ pods }) => pods)
  return lists.every((pods) => pods.length > 0 && pods.every(isByIp)) ? lists.flat() : undefined
}
