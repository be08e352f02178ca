import { createAdminServer } from '../admin/http-server.ts'
import type { Config } from '../config/config.ts'
import { redactConfig } from '../config/redact-config.ts'
import { createContextCacheManager } from '../context/create-context-cache-manager.ts'
import { createCreateSession } from '../context/create-session.ts'
import { createEndTurn } from '../context/end-turn.ts'
import { createLoadPolicy } from '../context/load-policy.ts'
import { createManageSessions } from '../context/manage-sessions.ts'
import { createReaper } from '../context/reaper.ts'
import { createSessionSeal } from '../context/session-seal.ts'
import { createSettling } from '../context/settling.ts'
import { createTenants } from '../context/tenant.ts'
import { createUseSession } from '../context/use-session.ts'
import { createHealthState } from '../extproc/health.ts'
import { createExtProcServer, type ListenAddress } from '../extproc/server.ts'
import { within } from '../extproc/within.ts'
import { loadArtefactStore } from '../kvcache/artefact-store/load-artefact-store.ts'
import { createCostProfile } from '../routing/cost-profile/cost-profile.ts'
import { createCostProfileKeeper } from '../routing/cost-profile/cost-profile-keeper.ts'
import { createPolicies } from '../routing/policies.ts'
import { createRouter } from '../routing/router.ts'
import { createTtftPredictor } from '../routing/ttft-predictor.ts'
import { watchEventLoop } from '../telemetry/event-loop.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createConfiguredAdmission } from './admission.ts'
import { createContextEvents } from './context-events.ts'
import { createConnector, createPodSource } from './engines.ts'
import { createResponseCaching } from './response-cache.ts'
import { createStores } from './stores.ts'

/** A gateway: everything that a process runs. */
export interface App {
  /** Resolves when Envoy can connect. */
  start(): Promise<{
    readonly extproc: ListenAddress
    readonly admin: { readonly host: string; readonly port: number }
  }>
  /** Tells Envoy to go elsewhere, lets what runs end, then closes everything. */
  stop(): Promise<void>
}

const drainMs = 10_000
const removeNowMs = 1_000
const sweepsPerReconcile = 30
const saveCostsMs = 60_000
const maxSessionsPerPod = 100_000

/** The composition root: the only place that knows all rooms. */
export const createApp = async (
  config: Config,
  parts: { readonly log: Logger; readonly metrics: Metrics; readonly version: string },
): Promise<App> => {
  const { log, metrics } = parts
  const events = createContextEvents(metrics, log)
  const { store, costs: costStore, ...connectorStores } = await createStores(config, { log, metrics })
  const pods = createPodSource(config, log)
  const { storeModule } = config.kv
  const artefactStore = storeModule === undefined ? undefined : await loadArtefactStore(storeModule)
  const connector = createConnector(config, { stores: connectorStores, artefactStore, pods, log })
  const costs = createCostProfile({ initialMsPerToken: config.kv.prefillMsPerToken })
  const costKeeper = createCostProfileKeeper({
    profile: costs,
    store: costStore,
    engine: config.kv.connector,
    saveIntervalMs: saveCostsMs,
    onFault: (operation, error) => log.warn('what turns cost could not be kept', { operation, err: error }),
  })
  const forecast = createTtftPredictor({
    source: pods,
    costs,
    turnLeaseMs: config.turns.leaseSeconds * 1000,
    nowMs: () => performance.now(),
    maxSessionsPerPod,
  })
  const router = createRouter({
    source: forecast,
    policies: createPolicies({
      defaultPolicy: config.routing.policy,
      stickiness: { factor: config.routing.stickinessFactor, margin: config.routing.stickinessMargin },
      costs,
    }),
  })
  const admission = createConfiguredAdmission(config, { pods, metrics, log })
  const loadPolicy = createLoadPolicy({ estimate: costs, maxLoadMs: config.kv.loadBudgetMs })
  const tenants = createTenants(config.tenant)
  const seal = createSessionSeal(config.tenant.secret)
  const reaper = createReaper({ queue: store, connector, events, forecast }, { ...config.reaper, sweepsPerReconcile })
  const turnParts = { store, router, pods, connector, loadPolicy, forecast, events, admission, tenants, seal }
  const settings = {
    ...config.sessions,
    ...config.turns,
    secret: config.tenant.secret,
    leaseMs: config.turns.leaseSeconds * 1000,
  }
  const settling = createSettling(
    createEndTurn({
      store,
      pods,
      connector,
      forecast,
      events,
      admission,
      removeSoon: reaper.sweepSoon,
      offloadTimeoutMs: config.kv.callTimeoutMs,
      announceGraceMs: config.reaper.announceGraceMs,
    }),
  )
  const service = createContextCacheManager({
    router,
    events,
    createSession: createCreateSession(turnParts, settings),
    useSession: createUseSession(turnParts, settings),
    manageSessions: createManageSessions(
      { ...turnParts, removeNow: () => within(removeNowMs, reaper.sweep()) },
      settings,
    ),
    endTurn: settling.endTurn,
    cachedAnswers: createResponseCaching(config, { tenants, metrics }),
  })

  const health = createHealthState()
  const { socketPath, host, port, tls } = config.listen.extproc
  const extproc = createExtProcServer({
    service,
    listen: socketPath === undefined ? { host, port } : { socketPath },
    tls,
    maxBodyBytes: config.turns.maxBodyBytes,
    health,
    hooks: {
      streamOpened: metrics.streamOpened,
      streamClosed: metrics.streamClosed,
      message: (phase, milliseconds) => metrics.messageAnswered({ phase, durationMs: milliseconds }),
      entryMalformed: (reason) => {
        metrics.accessLogMalformed()
        log.warn('an access log entry could not be parsed', { reason })
      },
      fault: (error) => log.warn('ext_proc fault', { err: error }),
    },
  })
  metrics.beforeRender(async () => {
    metrics.setTurnsInFlight(pods.pods().reduce((sum, pod) => sum + pod.inFlight, 0))
    const [{ removals, sessions }, { kvBytes, sessionBytes }] = await Promise.all([store.counts(), store.sizes()])
    metrics.setRemovalsPending(removals)
    metrics.setSessionsActive(sessions)
    if (kvBytes !== undefined) metrics.setKvStoredBytes(kvBytes)
    if (sessionBytes !== undefined) metrics.setSessionsBytes(sessionBytes)
  })
  const admin = createAdminServer({
    ...config.listen.admin,
    metrics,
    version: parts.version,
    redactedConfig: redactConfig(config),
    readiness: () => ({
      ready: health.isServing() && pods.pods().some((pod) => pod.ready),
      reasons: [
        ...(health.isServing() ? [] : ['not serving']),
        ...(pods.pods().some((pod) => pod.ready) ? [] : ['no pod is ready']),
      ],
    }),
    onError: (error) => log.warn('an admin page failed', { err: error }),
  })
  const eventLoop = watchEventLoop(metrics.eventLoopLagged)

  return {
    start: async () => {
      await Promise.all([pods.start(), costKeeper.start()])
      // What an earlier process left in pods and store goes before the first turn could meet it.
      await reaper.sweep()
      const extprocAddress = await extproc.start()
      const adminAddress = await admin.start()
      reaper.start()
      health.setServing(true)
      return { extproc: extprocAddress, admin: adminAddress }
    },
    stop: async () => {
      await extproc.drain(drainMs)
      admission?.close()
      await settling.settled()
      await costKeeper.stop()
      await reaper.stop()
      await pods.stop()
      await admin.stop()
      eventLoop.stop()
      await connector.close()
      await store.close()
    },
  }
}
