import { within } from '../async/deadline.ts'
import type { Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { parseJsonObject } from '../openai/parse-json-object.ts'
import { digestOf, type SessionRecord, type TenantKey } from '../sessions/session-record.ts'
import {
  type SessionPage,
  type SessionStore,
  StoreUnavailableError,
  type WholeSession,
} from '../sessions/session-store.ts'
import { mainPromptOf, promptsOf, totalsOf } from '../sessions/session-totals.ts'
import type { Decision, GatewayRequest, HeadersDecision } from './context-cache-manager.ts'
import type { ContextEvents } from './context-events.ts'
import type { Pools } from './pools.ts'
import type { Reaper } from './reaper.ts'
import { removeSession } from './remove-session.ts'
import { checkJsonBody, checkTtl, parseTtlHeader, type TtlBounds } from './request-headers.ts'
import { sessionHeaders } from './response-headers.ts'
import {
  isSessionId,
  type NamedSessionId,
  newSessionIdBeside,
  type SessionIdCipher,
  sessionKeyOf,
} from './session-id.ts'
import type { Tenants } from './tenant.ts'
import { limitError } from './tenant-limit-errors.ts'
import type { TurnTicket } from './turn-ticket.ts'

const defaultPageSize = 20
const maxPageSize = 100
/** Of a `PATCH`, whose body is one number. */
const maxPatchBytes = 64 * 1024

export interface ManageSettings extends TtlBounds, JsonLimits {
  /** How long a deletion waits for the removal of the session's KV, which goes on after that. */
  readonly deleteWaitMs: number
}

export const createManageSessions = (
  parts: {
    readonly store: SessionStore
    readonly tenants: Tenants
    readonly sessionIds: SessionIdCipher
    readonly events: ContextEvents
    readonly pools: Pick<Pools, 'forget'>
    readonly reaper: Pick<Reaper, 'sweepAndWait'>
    readonly slices: Slices
  },
  settings: ManageSettings,
) => {
  const found = (record: WholeSession | undefined, id: string): Decision<TurnTicket> => {
    if (record === undefined) throw new GatewayError('session_not_found')
    const namedBy = parts.sessionIds.decrypt(record.sealedId, record.tenant)?.namedBy
    return response(sessionView({ id, namedBy }, record))
  }

  const callStore = async <T>(operation: string, call: Promise<T>): Promise<T> => {
    try {
      return await call
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      parts.events.storeFault(operation, error)
      throw new GatewayError('session_store_unavailable', { cause: error })
    }
  }

  /** Calls the store as the tenant, and where that finds nothing, as the one by the other secret. */
  const asEither = async <T>(owners: Owners, call: (owner: Owner) => Promise<T>): Promise<T> => {
    const [first, former] = owners
    const found = await call(first)
    return former === undefined || found ? found : call(former)
  }

  const patch = (id: string, owners: Owners): HeadersDecision<TurnTicket> => ({
    kind: 'need-body',
    decide: async (body, scope) => {
      const limits = { ...settings, maxBytes: maxPatchBytes }
      const change = await parts.slices.run(parseJsonObject(body, limits), scope.signal)
      if (!change.has('ttl'))
        throw new GatewayError('missing_required_parameter', {
          param: 'ttl',
          message: 'Give the new time to live: {"ttl": 3600}.',
        })
      const ttlSeconds = checkTtl(change.get('ttl'), settings, 'ttl')
      return found(
        await callStore(
          'set_ttl',
          asEither(owners, (owner) => parts.store.setTtl({ ...owner, ttlSeconds })),
        ),
        id,
      )
    },
  })

  const remove = async (id: string, owners: Owners): Promise<Decision<TurnTicket>> => {
    const removed = await callStore(
      'remove',
      asEither(owners, (owner) => removeSession(parts, owner)),
    )
    if (!removed) throw new GatewayError('session_not_found')
    await within(settings.deleteWaitMs, parts.reaper.sweepAndWait())
    return response({ id, object: 'context.deleted', deleted: true })
  }

  const ownersOf = (request: GatewayRequest, id: string): Owners => {
    const tenant = parts.tenants.tenantOf(request)
    if (!isSessionId(id)) throw new GatewayError('session_not_found')
    const key = sessionKeyOf(id)
    const former = parts.tenants.formerTenantOf(request)
    return former === undefined
      ? [{ key, tenant }]
      : [
          { key, tenant },
          { key, tenant: former },
        ]
  }

  const forkOf = async (from: Owner, ttlSeconds: number | undefined) => {
    const id = newSessionIdBeside(from.key, parts.store)
    const sealedId = parts.sessionIds.encrypt(id, from.tenant)
    const outcome = await parts.store.fork({ from, session: { key: sessionKeyOf(id), sealedId, ttlSeconds } })
    switch (outcome.kind) {
      case 'unknown':
        return undefined
      case 'limited':
        throw limitError(outcome)
      case 'forked':
        return { id, record: outcome.record }
    }
  }

  return {
    /**
     * `POST /v1/context/{id}/fork`: a session that begins with the stored KV of this one, for `x-session-ttl` or as long as
     * this one. A body has no meaning. @throws GatewayError
     */
    fork: async (request: GatewayRequest, id: string): Promise<Decision<TurnTicket>> => {
      if (request.method !== 'POST') throw new GatewayError('method_not_allowed', { headers: { allow: 'POST' } })
      const owners = ownersOf(request, id)
      const ttlSeconds = parseTtlHeader(request, settings)
      const fork = await callStore(
        'fork',
        asEither(owners, (owner) => forkOf(owner, ttlSeconds)),
      )
      if (fork === undefined) throw new GatewayError('session_not_found')
      const { record } = fork
      parts.events.sessionCreated(record.key)
      const view = sessionView({ id: fork.id, namedBy: undefined }, { ...record, branches: [] })
      return response(view, sessionHeaders(fork.id, record))
    },
    /** `GET /v1/context?limit=20&after=ctx_…`: the caller's sessions, newest first. @throws GatewayError */
    list: async (request: GatewayRequest, query: URLSearchParams): Promise<Decision<TurnTicket>> => {
      const tenant = parts.tenants.tenantOf(request)
      const former = parts.tenants.formerTenantOf(request)
      const page = await callStore('list', listOf(parts.store, { ...readPage(query), tenant, former }))
      const sessions = page.records.map((record) => ({
        record,
        named: parts.sessionIds.decrypt(record.sealedId, record.tenant),
      }))
      return response({
        object: 'list',
        data: sessions.flatMap(({ named, record }) => (named === undefined ? [] : [sessionView(named, record)])),
        first_id: sessions.at(0)?.named?.id ?? null,
        last_id: sessions.at(-1)?.named?.id ?? null,
        has_more: page.hasMore,
      })
    },
    /** `GET`, `PATCH` and `DELETE /v1/context/{id}`. @throws GatewayError */
    one: async (request: GatewayRequest, id: string): Promise<HeadersDecision<TurnTicket>> => {
      if (!['GET', 'PATCH', 'DELETE'].includes(request.method)) {
        throw new GatewayError('method_not_allowed', { headers: { allow: 'GET, PATCH, DELETE' } })
      }
      const owners = ownersOf(request, id)
      switch (request.method) {
        case 'DELETE':
          return remove(id, owners)
        case 'PATCH':
          checkJsonBody(request)
          if (request.endOfStream) throw new GatewayError('invalid_json', { message: 'The request has no body.' })
          return patch(id, owners)
        default:
          return found(
            await callStore(
              'get',
              asEither(owners, (owner) => parts.store.get(owner)),
            ),
            id,
          )
      }
    },
  }
}

/** The tenant's sessions, and behind them those of the tenant by the other secret. */
const listOf = async (
  store: Pick<SessionStore, 'get' | 'list'>,
  query: Parameters<SessionStore['list']>[0] & { readonly former: TenantKey | undefined },
): Promise<SessionPage> => {
  const { former, limit, after } = query
  if (former === undefined) return store.list(query)
  if (after !== undefined && (await store.get({ key: after, tenant: former })) !== undefined)
    return store.list({ tenant: former, limit, after })
  const { records, hasMore } = await store.list(query)
  if (hasMore) return { records, hasMore }
  const room = limit - records.length
  const rest = await store.list({ tenant: former, limit: Math.max(1, room), after: undefined })
  return { records: [...records, ...rest.records.slice(0, room)], hasMore: rest.hasMore || rest.records.length > room }
}

type Owner = Pick<SessionRecord, 'key' | 'tenant'>
/** The session as the tenant's, and as that of the tenant by the other secret, while secrets are rotated. */
type Owners = readonly [Owner, Owner?]

const response = (body: unknown, headers: Readonly<Record<string, string>> = {}): Decision<TurnTicket> => ({
  kind: 'response',
  status: 200,
  body,
  headers,
})

const readPage = (query: URLSearchParams): Omit<Parameters<SessionStore['list']>[0], 'tenant'> => {
  const limitText = query.get('limit') ?? String(defaultPageSize)
  const limit = /^[1-9][0-9]{0,2}$/.test(limitText) ? Number(limitText) : 0
  if (limit < 1 || limit > maxPageSize) throw new GatewayError('invalid_page', { param: 'limit' })
  const after = query.get('after') ?? undefined
  if (after !== undefined && !isSessionId(after)) throw new GatewayError('invalid_page', { param: 'after' })
  return { limit, after: after === undefined ? undefined : sessionKeyOf(after) }
}

/** A session as clients see it. Times in whole seconds since 1970, as in OpenAI's objects. Nothing of a prompt. */
const sessionView = ({ id, namedBy }: NamedSessionId, session: WholeSession): unknown => {
  const prompts = promptsOf(session)
  const { turns, tokens } = totalsOf(prompts)
  const { pod, kv, kvStatus } = mainPromptOf(session)
  return {
    id,
    object: 'context',
    named_by: namedBy ?? null,
    prompts: prompts.length,
    digest: digestOf(session.key),
    model: session.model,
    created_at: Math.floor(session.createdAtMs / 1000),
    expires_at: Math.floor(session.expiresAtMs / 1000),
    ttl: session.ttlSeconds,
    turns,
    tokens,
    kv: {
      pod: pod ?? null,
      stored: kv === undefined ? null : { tokens: kv.tokens, bytes: kv.bytes, turn: kv.turn },
      note: kvStatus ?? null,
    },
  }
}
