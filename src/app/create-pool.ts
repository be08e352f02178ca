import { createHmac } from 'node:crypto'
import type { LiveConfig } from '../config/live-config.ts'
import { defaultPoolName, type PoolConfig, poolsOf } from '../config/pools.ts'
import type { Pool } from '../context/pools.ts'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { createEngineHttp } from '../engines/engine-http.ts'
import { createCacheSalts } from '../kvcache/cache-salts.ts'
import { createClaimSeal } from '../kvcache/claim-seal.ts'
import { createKvCache } from '../kvcache/kv-cache.ts'
import { selectedConnector } from '../kvcache/registry.ts'
import { createCostModel } from '../routing/cost-model.ts'
import { createCostModelKeeper } from '../routing/cost-model-store.ts'
import type { PodState } from '../routing/pod.ts'
import { createPolicies } from '../routing/policies.ts'
import { createRedisCostModelStore } from '../routing/redis/redis-cost-model-store.ts'
import { createRouter } from '../routing/router.ts'
import { contextTokensOf, serviceOf } from '../routing/served-models.ts'
import { createTtftPredictor } from '../routing/ttft-predictor.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { sentenceOf } from '../telemetry/sentence-of.ts'
import type { Warnings } from '../telemetry/warnings.ts'
import type { Tracing } from '../tracing/create-tracing.ts'
import { createEngineChecks } from './engine-checks.ts'
import { createPodSource, engineAccessOf } from './engines.ts'
import type { PoolStores } from './stores.ts'

/** Of a connector's calls to one pod, at a time. */
const callsPerPod = 4
const saveCostsMs = 60_000
const maxRoutedSessions = 100_000

/** A pool with all that runs for it. */
export interface RunningPool {
  /** What turns use of it. */
  readonly pool: Pool
  /** Its pods, ready or not. */
  pods(): readonly PodState[]
  /** Name of the pool's connector. */
  readonly connector: string
  /** Takes over what has changed in the live configuration. */
  reconfigure(): void
  /** Resolves after the first check of each pod. */
  start(): Promise<void>
  /** Has the connector check each engine, now and whenever its pod becomes ready. */
  checkEngines(): Promise<void>
  /** Stops checks, and saves what was learnt. */
  stop(): Promise<void>
  /** Closes the connector; after the last turn. */
  close(): Promise<void>
}

export const createPool = async (
  poolConfig: PoolConfig,
  live: LiveConfig,
  parts: {
    readonly stores: PoolStores
    readonly log: Logger
    readonly metrics: Metrics
    readonly warnings: Warnings
    readonly former: FormerSecret | undefined
    /** A pod has room for another turn. */
    readonly roomAt: (pod: string) => void
    /** Default: turns are not followed. */
    readonly tracing: Tracing | undefined
  },
): Promise<RunningPool> => {
  const { name, kv: kvConfig } = poolConfig
  const config = live.current
  /** Undefined would be a pool that a reload took away, which is refused. */
  const poolNow = (): PoolConfig => poolsOf(live.current).find((one) => one.name === name) ?? poolConfig
  const { stores, log, warnings, tracing } = parts
  const selected = await selectedConnector(kvConfig)
  const access = engineAccessOf(poolConfig)
  const secret = secretOf(name, config.tenant.secret)
  const formerSecret = parts.former && secretOf(name, parts.former.secret)
  const isFormer = (tenant: string): boolean => parts.former?.has(tenant) === true
  const pods = await createPodSource(poolConfig, config, {
    ...parts,
    access,
    onChange: (pod) => checks.podChanged(pod),
    addresses: () => poolNow().pods,
  })
  // Stored KV is limited for all pools together.
  const { maxStoreBytes, storeThreshold } = config.kv
  const turnLeaseMs = config.turns.leaseSeconds * 1000
  const http = createEngineHttp({ callsPerPod, access, traceparent: tracing && (() => tracing.traceparent()) })
  const connector = await selected.create(kvConfig, {
    identity: stores.identity,
    redis: stores.redis,
    pods: () => pods.pods().map(({ address }) => address),
    instanceOf: (pod) => pods.pods().find(({ address }) => address === pod)?.instance,
    http,
    access,
    salts: createCacheSalts(secret, formerSecret === undefined ? undefined : { secret: formerSecret, has: isFormer }),
    maxTurnMs: turnLeaseMs,
    orphanGraceMs: config.reaper.announceGraceMs,
    maxArtefactBytes: maxStoreBytes === undefined ? undefined : maxStoreBytes * storeThreshold,
    roomAt: parts.roomAt,
    warnings,
    log,
  })
  const kv = createKvCache(connector, {
    name: selected.name,
    pool: name,
    seal: createClaimSeal(secret, formerSecret),
    log,
  })
  const checks = createEngineChecks({ ...parts, kv, pods })
  const costs = createCostModel({ initialMsPerToken: kvConfig.prefillMsPerToken })
  const onFault = (operation: string, error: unknown): void =>
    log.warn('costs were not loaded or saved', { operation, cause: sentenceOf(error) })
  const kept = { model: costs, engine: selected.name, saveIntervalMs: saveCostsMs, onFault }
  const costKeeper = stores.redis && createCostModelKeeper({ ...kept, store: createRedisCostModelStore(stores.redis) })
  const nowMs = () => performance.now()
  const predictor = createTtftPredictor({ source: pods, costs, nowMs, maxSessions: maxRoutedSessions, turnLeaseMs })
  const createRouterNow = () => {
    const { policy, stickinessFactor: factor, stickinessMargin: margin } = live.current.routing
    const stickiness = { factor, margin }
    const policies = createPolicies({ defaultPolicy: policy, stickiness, costs })
    return createRouter({ source: predictor, stickiness, policies })
  }
  let router = createRouterNow()
  let maxLoadMs = kvConfig.loadBudgetMs
  const pool: Pool = {
    name,
    serves: (model) => serviceOf(pods.pods(), model, poolConfig.models),
    responsesApi: poolConfig.responsesApi,
    contextTokens: (model) => contextTokensOf(pods.pods(), model),
    get router() {
      return router
    },
    pods,
    kv,
    costs,
    predictor,
    get maxLoadMs() {
      return maxLoadMs
    },
  }
  return {
    pool: tracing?.followPool(pool) ?? pool,
    pods: () => pods.pods(),
    connector: selected.name,
    reconfigure: () => {
      router = createRouterNow()
      maxLoadMs = poolNow().kv.loadBudgetMs
    },
    start: async () => {
      await Promise.all([pods.start(), costKeeper?.start()])
      for (const { address, ready } of pods.pods())
        if (!ready)
          parts.warnings.raiseOutage('engine_unavailable', address, 'it has not answered its health check yet')
    },
    checkEngines: () => checks.start(),
    stop: async () => {
      await costKeeper?.stop()
      await pods.stop()
    },
    close: async () => {
      await kv.close()
      await http.close()
    },
  }
}

/** Salts of one pool are never those of another: equal prompts of a tenant have KV in each. */
const secretOf = (pool: string, secret: string): string =>
  pool === defaultPoolName ? secret : createHmac('sha256', secret).update(`pool\n${pool}`).digest('base64url')
