import { expect } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import {
  asJson,
  askRaw,
  type Bench,
  createSession,
  credential,
  expectRefusal,
  listed,
  look,
  type Reading,
  type Refusal,
  someJson,
  startBench,
  watching,
  wellFramed,
} from './support.ts'

/** The times to live that the gateway of such a bench allows. */
export const bounds = { min: 2, max: 86_400 } as const

/** The requests that have to do with sessions: what they begin with, and their own headers. */
const routes = {
  'create by POST /v1/context': () => ({ start: 'POST /v1/context', own: [] }),
  'create by x-session-ttl': () => ({ start: 'POST /v1/completions', own: ['x-session-ttl: 60'] }),
  use: (id: string) => ({ start: 'POST /v1/completions', own: [`x-session-id: ${id}`] }),
  list: () => ({ start: 'GET /v1/context', own: [] }),
  get: (id: string) => ({ start: `GET /v1/context/${id}`, own: [] }),
  patch: (id: string) => ({ start: `PATCH /v1/context/${id}`, own: [] }),
  delete: (id: string) => ({ start: `DELETE /v1/context/${id}`, own: [] }),
} as const satisfies Record<string, (id: string) => { readonly start: string; readonly own: readonly string[] }>

export type RouteName = keyof typeof routes

export const allRoutes = Object.keys(routes) as RouteName[]
export const creates = ['create by POST /v1/context', 'create by x-session-ttl'] as const satisfies readonly RouteName[]
const withBody: ReadonlySet<RouteName> = new Set([...creates, 'use', 'patch'])

/** A bench with a session that every refused request leaves as it is. */
export interface RefusalBench extends Bench {
  readonly sessionId: string
  /** Sends a request that is right but for what is given. Default: a credential, the content type, and a body where the route has one. */
  ask(route: RouteName, request?: { readonly headers?: readonly string[]; readonly body?: string }): Promise<Reading>
  /** The request is refused, no pod hears of it, no session comes of it, and the one that is there stays as it is. */
  expectRefused(ask: () => Promise<Reading>, refusal: Refusal): Promise<Reading>
}

export const startRefusalBench = async (): Promise<RefusalBench> => {
  const bench = await startBench({
    CTX_SESSIONS_MIN_TTL_SECONDS: String(bounds.min),
    CTX_SESSIONS_MAX_TTL_SECONDS: String(bounds.max),
  })
  const { stack } = bench
  const sessionId = await endedCreate(bench)
  return {
    ...bench,
    sessionId,
    ask: (route, request = {}) => {
      const { start, own } = routes[route](sessionId)
      const headers = [...own, ...(request.headers ?? [credential, asJson])]
      const body = withBody.has(route) ? { body: request.body ?? someJson } : {}
      return askRaw(stack, wellFramed(start, { headers, ...body }))
    },
    expectRefused: async (ask, refusal) => {
      const before = { sessions: await listed(stack), session: await look(stack, sessionId) }
      const { result, arrivals } = await watching(bench, ask)
      expectRefusal(result, refusal)
      expect(arrivals).toEqual([])
      expect(before.sessions).toEqual(expect.arrayContaining([...(await listed(stack))]))
      expect(await look(stack, sessionId)).toEqual(before.session)
      return result
    },
  }
}

/** A session whose first turn is counted. Stops the bench when there is none. */
const endedCreate = async (bench: Bench): Promise<string> => {
  try {
    const id = await createSession(bench.stack)
    await eventually(async () => expect((await look(bench.stack, id)).turns).toBe(1))
    return id
  } catch (error) {
    await bench.stop()
    throw error
  }
}
