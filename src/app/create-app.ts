import { Activity } from '../admin/activity.ts'
import { createApiAccess } from '../admin/api-access.ts'
import { createAdminServer } from '../admin/http-server.ts'
import { createOperatorsApi } from '../admin/operators-api.ts'
import { within } from '../async/deadline.ts'
import type { Config } from '../config/config.ts'
import { liveView } from '../config/live-config.ts'
import { isLoopback } from '../config/open-port.ts'
import { poolsOf } from '../config/pools.ts'
import { redactConfig } from '../config/redact.ts'
import { createContextCacheManager } from '../context/create-context-cache-manager.ts'
import { createPools } from '../context/pools.ts'
import { createFormerSecret } from '../crypto/former-secret.ts'
import { createHealthState } from '../extproc/health.ts'
import type { ListenAddress } from '../extproc/listener.ts'
import { createExtProcServer } from '../extproc/server.ts'
import { limitRepeats } from '../telemetry/limit-repeats.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createWarnings } from '../telemetry/warnings.ts'
import { createContextEvents } from './context-events.ts'
import { createPool } from './create-pool.ts'
import { updateGauges } from './gauges.ts'
import { createKeptResponsesParts } from './kept-responses.ts'
import { currentCounts, poolFacts } from './operators-facts.ts'
import {
  createConfiguredAdmission,
  createConfiguredHistory,
  createConfiguredTracing,
  createResponseCaching,
} from './optional-parts.ts'
import { readinessOf } from './readiness.ts'
import { createStores } from './stores.ts'

const deleteWaitMs = 1_000
/** A start waits no longer than this for its first sweep: pods or a KV store may not answer. */
const firstSweepMs = 5_000
/** Time between two searches for orphaned KV, in sweep intervals. */
const sweepIntervalsPerOrphanSearch = 30

/** A stop waits no longer than this for the last spans to be exported. */
const lastExportMs = 2_000

/** A gateway: everything that runs in a process. */
export interface App {
  /** Resolves to the addresses when Envoy can connect. */
  start(): Promise<{
    readonly extproc: ListenAddress
    readonly admin: { readonly host: string; readonly port: number }
  }>
  /** The configuration that holds now. */
  config(): Config
  /** Takes over what `judgeReload` found applicable, for turns from now on. */
  reconfigure(config: Config): void
  /** Drains: Envoy goes elsewhere, running turns end. Then closes everything. */
  stop(): Promise<void>
}

const contextSettingsOf = (config: Config) => ({
  ...config.sessions,
  ...config.turns,
  ...config.tenant,
  leaseMs: config.turns.leaseSeconds * 1000,
  offloadTimeoutMs: config.turns.leaseSeconds * 1000,
  announceGraceMs: config.reaper.announceGraceMs,
  deleteWaitMs,
  reaper: { ...config.reaper, orphanIntervalMs: sweepIntervalsPerOrphanSearch * config.reaper.intervalMs },
})

/** The composition root: only it knows all modules, right to left as in the first picture of docs/architecture.md. */
export const createApp = async (
  config: Config,
  parts: { readonly log: Logger; readonly metrics: Metrics; readonly version: string },
): Promise<App> => {
  const { metrics } = parts
  const live = { current: config }
  let settings = contextSettingsOf(config)
  const log = limitRepeats(parts.log)
  const warnings = createWarnings(parts.log)
  const { store, forPool, openHistory, onFault } = await createStores(live, { log, metrics, warnings })
  const former = createFormerSecret(config.tenant.previousSecret)
  const history = createConfiguredHistory(live, { openHistory, former })
  const activity = new Activity()
  const tracing = await createConfiguredTracing(config, { log, version: parts.version })
  const recorded = createContextEvents(metrics, log, { onStoreFault: onFault, warnings, activity })
  const pods = () => pools.flatMap((pool) => pool.pods())
  const admission = createConfiguredAdmission(live, { pods, metrics, log })
  const roomAt = (pod: string): void => admission.roomAt(pod)
  const [firstPool, ...otherPools] = await Promise.all(
    poolsOf(config).map((pool) =>
      createPool(pool, live, { stores: forPool(pool.name), log, metrics, warnings, roomAt, former, tracing }),
    ),
  )
  if (firstPool === undefined) throw new Error('the configuration was not checked')
  const pools = [firstPool, ...otherPools]
  const { manager, operations, tenantOperations, reaper, drain } = createContextCacheManager(
    {
      store: tracing?.followStore(store) ?? store,
      pools: createPools([firstPool.pool, ...otherPools.map(({ pool }) => pool)]),
      events: tracing?.followEvents(recorded) ?? recorded,
      admission,
      former,
      responseCache: createResponseCaching(config, metrics),
      responses: history,
      keptResponses: history && createKeptResponsesParts(config, { ...history, log, metrics }),
      nowMs: () => performance.now(),
      tracer: tracing?.tracer,
    },
    liveView(() => settings),
  )

  const health = createHealthState()
  let openStreams = 0
  const { socketPath, host, port, tls, selfSigned, drainMs } = config.listen.extproc
  const extproc = createExtProcServer({
    service: manager,
    listen: socketPath === undefined ? { host, port } : { socketPath },
    tls: tls ?? (selfSigned ? 'self-signed' : undefined),
    maxBodyBytes: config.turns.maxBodyBytes,
    health,
    hooks: {
      streamOpened: () => {
        openStreams += 1
      },
      streamClosed: () => {
        openStreams -= 1
      },
      message: (phase, durationMs) => metrics.observe('ext_proc_message_duration_seconds', { phase }, durationMs),
      entryMalformed: (reason) => {
        metrics.add('access_log_malformed_total', {})
        log.warn('an access log entry could not be parsed', { reason })
      },
      peerRefused: (peer) => {
        metrics.add('ext_proc_peers_refused_total', { reason: peer.reason })
        // The cause is no text field, so that all refusals share one line a minute.
        log.warn('TLS refused a peer of the gRPC port', { peer })
      },
      fault: (error) => log.warn('ext_proc fault', { err: error }),
    },
  })
  updateGauges(metrics, { pools, store, warnings, openStreams: () => openStreams })
  const { token, host: adminHost } = config.listen.admin
  const readiness = () => readinessOf({ isServing: health.isServing(), store: config.sessions.store, pools, warnings })
  const admin = createAdminServer({
    ...config.listen.admin,
    access: createApiAccess({ token, isLoopback: isLoopback(adminHost) }),
    api: createOperatorsApi({
      activity,
      sessions: operations,
      tenants: tenantOperations,
      facts: () => {
        const { store: sessionStore, warnings: found } = readiness()
        return { version: parts.version, store: sessionStore, warnings: found }
      },
      current: () => currentCounts({ store, pools, admission }),
      degraded: () => metrics.total('degraded_total'),
      pools: () => poolFacts(pools),
    }),
    metrics,
    version: parts.version,
    redactedConfig: () => redactConfig(live.current),
    readiness,
    onError: (error) => log.warn('an admin page failed', { err: error }),
  })

  return {
    config: () => live.current,
    reconfigure: (next) => {
      live.current = next
      settings = contextSettingsOf(next)
      for (const pool of pools) pool.reconfigure()
    },
    start: async () => {
      await Promise.all(pools.map((pool) => pool.start()))
      // Remains of an earlier process in pods and store are removed before the first turn.
      await within(firstSweepMs, reaper.sweepAndWait())
      await Promise.all(pools.map((pool) => pool.checkEngines()))
      const extprocAddress = await extproc.start()
      const adminAddress = await admin.start()
      reaper.start()
      health.setServing(true)
      return { extproc: extprocAddress, admin: adminAddress }
    },
    stop: async () => {
      await extproc.drain(drainMs)
      admission.close()
      await drain()
      await reaper.stop()
      if (tracing !== undefined) await within(lastExportMs, tracing.stop())
      await Promise.all(pools.map((pool) => pool.stop()))
      await admin.stop()
      await Promise.all(pools.map((pool) => pool.close()))
      await store.close()
    },
  }
}
