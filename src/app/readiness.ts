import type { Warnings } from '../telemetry/warnings.ts'
import type { RunningPool } from './create-pool.ts'

/** What /readyz shows. A gateway is ready when it serves and a pod is ready: turns do without anything else. */
export const readinessOf = (parts: {
  readonly isServing: boolean
  /** Kind of the session store. */
  readonly store: string
  readonly pools: readonly Pick<RunningPool, 'pool' | 'connector' | 'pods'>[]
  readonly warnings: Pick<Warnings, 'list'>
}) => {
  const { isServing, store } = parts
  const warnings = parts.warnings.list()
  const pools = parts.pools.map(({ pool, connector, pods }) => ({
    name: pool.name,
    connector,
    pods: pods().map(({ address, ready, inFlight }) => ({ address, ready, inFlight })),
  }))
  const pods = pools.flatMap((pool) => pool.pods)
  const hasPod = pods.some(({ ready }) => ready)
  return {
    ready: isServing && hasPod,
    reasons: [...(isServing ? [] : ['not serving']), ...(hasPod ? [] : ['no pod is ready'])],
    degraded: warnings.length > 0 || pods.some(({ ready }) => !ready),
    store: { kind: store, available: !warnings.some(({ kind }) => kind === 'store_unavailable') },
    pools,
    warnings,
  }
}
