import { beforeAll, expect } from '@jest/globals'
import { createdId, untilTurns, view } from '../support/sessions.ts'
import { type ScriptedStack, useScriptedStack } from '../support/use-stack.ts'
import {
  anyResponse,
  asJson,
  askRaw,
  credential,
  expectRefusal,
  listed,
  type Reading,
  type Refusal,
  someJson,
  watching,
  wellFramed,
} from './support.ts'

/** The bounds of a session's TTL, seconds. */
export const bounds = { min: 2, max: 86_400 } as const

/** The requests about sessions: their first line and their own headers. */
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

/** A stack in front of two scripted pods, with a session that no refused request changes. */
export interface Fixture extends ScriptedStack {
  /** A session of one turn. */
  readonly sessionId: string
  /** Sends a request that is correct apart from what is given. Default: a credential, content type, perhaps a body. */
  ask(route: RouteName, request?: { readonly headers?: readonly string[]; readonly body?: string }): Promise<Reading>
  /** The request is refused, reaches no pod, creates no session and leaves `sessionId` unchanged. */
  expectRefused(ask: () => Promise<Reading>, refusal: Refusal): Promise<Reading>
}

export const useFixture = (): Fixture => {
  let sessionId = ''
  let turns = 1
  const scripted = useScriptedStack({
    podCount: 2,
    env: {
      CTX_SESSIONS_MIN_TTL_SECONDS: String(bounds.min),
      CTX_SESSIONS_MAX_TTL_SECONDS: String(bounds.max),
    },
  })
  const { stack, pods } = scripted
  beforeAll(async () => {
    for (const pod of pods) pod.otherwise(anyResponse)
    sessionId = await createdId(stack)
    await untilTurns(stack, sessionId, turns)
  })
  return {
    ...scripted,
    get sessionId() {
      return sessionId
    },
    ask: async (route, request = {}) => {
      const { start, own } = routes[route](sessionId)
      const headers = [...own, ...(request.headers ?? [credential, asJson])]
      const body = withBody.has(route) ? { body: request.body ?? someJson } : {}
      const result = await askRaw(stack, wellFramed(start, { headers, ...body }))
      // A turn is recorded after its response: the next test must not take it for an effect of its own request.
      if (route === 'use' && result.status === 200) {
        turns += 1
        await untilTurns(stack, sessionId, turns)
      }
      return result
    },
    expectRefused: async (ask, refusal) => {
      const before = { sessions: await listed(stack), session: await view(stack, sessionId) }
      const { result, arrivals } = await watching(scripted, ask)
      expectRefusal(result, refusal)
      expect(arrivals).toEqual([])
      expect(before.sessions).toEqual(expect.arrayContaining((await listed(stack)).slice(0, 1)))
      expect(await view(stack, sessionId)).toEqual(before.session)
      return result
    },
  }
}
