import type { SessionOperations } from '../context/operate-sessions.ts'
import type { TenantOperations } from '../context/operate-tenants.ts'
import { type TenantName, tenantNameOf } from '../sessions/session-directory.ts'
import { StoreUnavailableError, type WholeSession } from '../sessions/session-store.ts'
import type { Activity } from './activity.ts'
import { AdminError } from './admin-error.ts'
import { sessionView } from './session-view.ts'

/** A pod as the gateway sees it now. */
interface PodFacts {
  readonly address: string
  readonly ready: boolean
  readonly turnsInFlight: number
  readonly sessions: number
  readonly models: readonly string[]
}

/** What the API shows. */
export interface OperatorsSources {
  readonly activity: Activity
  readonly sessions: SessionOperations
  readonly tenants: TenantOperations
  /** Version, store and warnings. */
  readonly facts: () => Readonly<Record<string, unknown>>
  /** Counts that stand in the store are null while it does not answer. */
  readonly current: () => Promise<Readonly<Record<string, number | null>>>
  /** Turns that went on without a part of the cache. */
  readonly degraded: () => Promise<number>
  readonly pools: () => readonly {
    readonly name: string
    readonly connector: string
    readonly pods: readonly PodFacts[]
  }[]
}

const maxPageSize = 100
/** Pages that one search by model looks through: the store serves turns meanwhile. */
const maxPages = 10

/** What /api answers, without its transport. @throws AdminError */
export interface OperatorsApi {
  overview(): Promise<Readonly<Record<string, unknown>>>
  pods(): unknown
  listSessions(query: URLSearchParams): Promise<unknown>
  session(id: string): Promise<unknown>
  removeSession(id: string): Promise<unknown>
  /** What a tenant uses. */
  tenant(tenant: TenantName): Promise<unknown>
  eraseTenant(tenant: TenantName): Promise<unknown>
}

export const createOperatorsApi = (sources: OperatorsSources): OperatorsApi => {
  const { activity, sessions } = sources
  const startedAt = new Date().toISOString()

  const find = async (id: string): Promise<WholeSession> => {
    const session = await orUnavailable(sessions.find(id))
    if (session === undefined) throw new AdminError('unknown_session')
    return session
  }

  const search = async (query: SessionQuery): Promise<unknown> => {
    let after = query.after
    const found: WholeSession[] = []
    for (let pages = 0; pages < maxPages; pages += 1) {
      const page = await orUnavailable(sessions.page({ ...query, after }))
      found.push(...page.records.filter(({ model }) => query.model === undefined || query.model === model))
      after = page.next
      if (after === undefined || found.length > 0) break
    }
    return { data: found.map((session) => sessionView(session, activity.timelines)), next: after ?? null }
  }

  return {
    overview: async () => ({
      ...sources.facts(),
      startedAt,
      now: new Date().toISOString(),
      current: await sources.current(),
      totals: { ...activity.totals(), degraded: await sources.degraded() },
      ttftMs: activity.ttftMs(),
      samples: activity.samples(),
    }),
    pods: () => ({
      pools: sources.pools().map(({ pods, ...pool }) => ({
        ...pool,
        pods: pods.map((pod) => ({ ...pod, ...activity.pod(pod.address) })),
      })),
    }),
    listSessions: (query) => search(readQuery(query)),
    session: async (id) => {
      const session = await find(id)
      const timeline = [session, ...session.branches].flatMap(({ key }) => activity.timelines.eventsOf(key))
      timeline.sort((a, b) => a.at.localeCompare(b.at))
      return { ...sessionView(session, activity.timelines), timeline }
    },
    removeSession: async (id) => {
      const isRemoved = await orUnavailable(sessions.remove(await find(id)))
      if (!isRemoved) throw new AdminError('unknown_session')
      return { deleted: true }
    },
    tenant: async (tenant) => ({ tenant, ...(await orUnavailable(sources.tenants.use(tenant))) }),
    eraseTenant: async (tenant) => ({ tenant, ...(await orUnavailable(sources.tenants.erase(tenant))) }),
  }
}

type SessionQuery = Parameters<SessionOperations['page']>[0] & { readonly model: string | undefined }

const readQuery = (query: URLSearchParams): SessionQuery => {
  const limitText = query.get('limit') ?? '50'
  const limit = /^[1-9][0-9]{0,2}$/.test(limitText) ? Number(limitText) : 0
  const tenantText = query.get('tenant') || undefined
  const tenant = tenantText === undefined ? undefined : tenantNameOf(tenantText)
  const isTenantWrong = tenantText !== undefined && tenantText !== tenant
  if (limit < 1 || limit > maxPageSize || isTenantWrong) throw new AdminError('invalid_query')
  return { limit, tenant, after: query.get('after') || undefined, model: query.get('model') || undefined }
}

const orUnavailable = async <T>(call: Promise<T>): Promise<T> => {
  try {
    return await call
  } catch (error) {
    throw error instanceof StoreUnavailableError ? new AdminError('session_store_unavailable') : error
  }
}
