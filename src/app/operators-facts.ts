import type { OperatorsSources } from '../admin/operators-api.ts'
import type { Admission } from '../admission/admission.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import { StoreUnavailableError } from '../sessions/session-store.ts'
import type { RunningPool } from './create-pool.ts'

/** What holds now, for the console. */
export const currentCounts = async (parts: {
  readonly store: Pick<RemovalQueue, 'counts' | 'sizes'>
  readonly pools: readonly Pick<RunningPool, 'pods'>[]
  readonly admission: Pick<Admission, 'waiting'>
}): Promise<Readonly<Record<string, number | null>>> => {
  const inFlight = parts.pools.flatMap((pool) => pool.pods()).reduce((sum, pod) => sum + pod.inFlight, 0)
  return { turnsInFlight: inFlight, waiting: parts.admission.waiting(), ...(await storeCounts(parts.store)) }
}

const storeCounts = async (store: Pick<RemovalQueue, 'counts' | 'sizes'>) => {
  try {
    const [{ sessions, removals }, { kvBytes = null }] = await Promise.all([store.counts(), store.sizes()])
    return { sessions, removalsPending: removals, storedBytes: kvBytes }
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error
    return { sessions: null, removalsPending: null, storedBytes: null }
  }
}

/** The pools and their pods, for the console. */
export const poolFacts = (pools: readonly RunningPool[]): ReturnType<OperatorsSources['pools']> =>
  pools.map((running) => ({
    name: running.pool.name,
    connector: running.connector,
    pods: running.pods().map(({ address, ready, inFlight, models }) => ({
      address,
      ready,
      turnsInFlight: inFlight,
      sessions: running.pool.predictor.sessionsAt(address),
      models: [...(models?.names ?? [])],
    })),
  }))
