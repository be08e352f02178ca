import type { PodState } from '../routing/pod.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type Warnings, warningKinds } from '../telemetry/warnings.ts'
import type { RunningPool } from './create-pool.ts'

/** Before each rendering, sets gauges of pods, store and warnings; removes series of models that no engine lists. */
export const updateGauges = (
  metrics: Metrics,
  parts: {
    readonly pools: readonly RunningPool[]
    readonly store: Pick<SessionStore & RemovalQueue, 'counts' | 'sizes'>
    readonly warnings: Pick<Warnings, 'list'>
    readonly openStreams: () => number
  },
): void => {
  const { pools, store, warnings } = parts
  let models: ReadonlySet<string> = new Set()

  const forgetModels = async (states: readonly PodState[]): Promise<void> => {
    const listed = new Set(states.flatMap((pod) => [...(pod.models?.names ?? [])]))
    const gone = [...models].filter((model) => !listed.has(model))
    models = listed
    await Promise.all(gone.map((model) => metrics.forget('model', model)))
  }

  metrics.beforeRender(() => {
    metrics.set('ext_proc_streams_active', {}, parts.openStreams())
    const found = warnings.list()
    for (const kind of warningKinds)
      metrics.set('warnings', { kind }, found.filter((warning) => warning.kind === kind).length)
    for (const pool of pools) setPods(metrics, pool.pool, pool.pods())
  })
  metrics.beforeRender(() => forgetModels(pools.flatMap((pool) => pool.pods())))
  metrics.beforeRender(async () => {
    const [{ removals, sessions }, { kvBytes, sessionBytes }] = await Promise.all([store.counts(), store.sizes()])
    metrics.set('removals_pending', {}, removals)
    metrics.set('sessions_active', {}, sessions)
    if (kvBytes !== undefined) metrics.set('kv_stored_bytes', {}, kvBytes)
    if (sessionBytes !== undefined) metrics.set('sessions_bytes', {}, sessionBytes)
  })
}

const setPods = (metrics: Metrics, { name: pool, predictor }: RunningPool['pool'], pods: readonly PodState[]): void => {
  const ready = pods.filter((pod) => pod.ready).length
  metrics.set('pods', { pool, state: 'ready' }, ready)
  metrics.set('pods', { pool, state: 'not_ready' }, pods.length - ready)
  const inFlight = pods.reduce((sum, pod) => sum + pod.inFlight, 0)
  metrics.set('turns_in_flight', { pool }, inFlight)
  for (const pod of pods) {
    const labels = { pool, pod: pod.address }
    metrics.set('pod_ready', labels, pod.ready ? 1 : 0)
    metrics.set('pod_turns_in_flight', labels, pod.inFlight)
    metrics.set('pod_sessions', labels, predictor.sessionsAt(pod.address))
  }
}
