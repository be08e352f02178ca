import { Activity } from '../../src/admin/activity.ts'
import { createApiAccess } from '../../src/admin/api-access.ts'
import { createOperatorsApi } from '../../src/admin/operators-api.ts'
import { createSessionOperations } from '../../src/context/operate-sessions.ts'
import { createTenantOperations } from '../../src/context/operate-tenants.ts'
import { createMemorySessionStore } from '../../src/sessions/memory/create-memory-session-store.ts'

/** The operators' API on a memory store, without pods. */
export const operatorsParts = (
  access: Partial<Parameters<typeof createApiAccess>[0]> = {},
  nowMs: () => number = Date.now,
) => {
  const store = createMemorySessionStore({ nowMs })
  const activity = new Activity(nowMs)
  const sessions = createSessionOperations(
    {
      store,
      events: { sessionDeleted: (key) => activity.sessionDeleted(key) },
      pools: { forget: () => undefined },
      reaper: { sweepAndWait: async () => undefined },
    },
    { deleteWaitMs: 0 },
  )
  const erased: unknown[] = []
  const tenants = createTenantOperations({
    store,
    events: {
      sessionDeleted: (key) => activity.sessionDeleted(key),
      tenantErased: (...what) => erased.push(what),
    },
    pools: { forget: () => undefined },
    reaper: { triggerSweep: () => undefined },
    nowMs: () => performance.now(),
  })
  return {
    store,
    activity,
    /** Erasures that were reported. */
    erased,
    access: createApiAccess({ token: undefined, isLoopback: true, nowMs, ...access }),
    api: createOperatorsApi({
      activity,
      sessions,
      tenants,
      facts: () => ({ version: '1.2.3' }),
      current: async () => ({ sessions: (await store.counts()).sessions }),
      degraded: async () => 0,
      pools: () => [
        {
          name: 'default',
          connector: 'none',
          pods: [{ address: '10.0.0.1:8000', ready: true, turnsInFlight: 0, sessions: 1, models: ['m'] }],
        },
      ],
    }),
  }
}
