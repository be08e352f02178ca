import { within } from '../async/deadline.ts'
import type { Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { parseJsonObject } from '../openai/parse-json-object.ts'
import { digestOf, type SessionRecord } from '../sessions/session-record.ts'
import { type SessionStore, StoreUnavailableError, type WholeSession } from '../sessions/session-store.ts'
import type { Decision, GatewayRequest, HeadersDecision } from './context-cache-manager.ts'
import type { ContextEvents } from './context-events.ts'
import type { Pools } from './pools.ts'
import type { Reaper } from './reaper.ts'
import { checkJsonBody, checkTtl, type TtlBounds } from './request-headers.ts'
import { isSessionId, type NamedSessionId, type SessionIdCipher, sessionKeyOf } from './session-id.ts'
import type { Tenants } from './tenant.ts'
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

  const patch = (id: string, owner: Owner): HeadersDecision<TurnTicket> => ({
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
      return found(await callStore('set_ttl', parts.store.setTtl({ ...owner, ttlSeconds })), id)
    },
  })

  const remove = async (id: string, owner: Owner): Promise<Decision<TurnTicket>> => {
    const removed = await callStore('remove', parts.store.remove(owner))
    if (!removed) throw new GatewayError('session_not_found')
    parts.events.sessionDeleted(owner.key)
    parts.pools.forget(owner.key)
    await within(settings.deleteWaitMs, parts.reaper.sweepAndWait())
    return response({ id, object: 'context.deleted', deleted: true })
  }

  return {
    /** `GET /v1/context?limit=20&after=ctx_…`: the caller's sessions, newest first. @throws GatewayError */
    list: async (request: GatewayRequest, query: URLSearchParams): Promise<Decision<TurnTicket>> => {
      const tenant = parts.tenants.tenantOf(request)
      const page = await callStore('list', parts.store.list({ tenant, ...readPage(query) }))
      const sessions = page.records.map((record) => ({
        record,
        named: parts.sessionIds.decrypt(record.sealedId, tenant),
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
      const tenant = parts.tenants.tenantOf(request)
      if (!isSessionId(id)) throw new GatewayError('session_not_found')
      const owner: Owner = { key: sessionKeyOf(id), tenant }
      switch (request.method) {
        case 'DELETE':
          return remove(id, owner)
        case 'PATCH':
          checkJsonBody(request)
          if (request.endOfStream) throw new GatewayError('invalid_json', { message: 'The request has no body.' })
          return patch(id, owner)
        default:
          return found(await callStore('get', parts.store.get(owner)), id)
      }
    },
  }
}

type Owner = Pick<SessionRecord, 'key' | 'tenant'>

const response = (body: unknown): Decision<TurnTicket> => ({ kind: 'response', status: 200, body, headers: {} })

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
  const prompts = [session, ...session.branches]
  const { pod, kv, kvStatus } = prompts.reduce((main, each) => (each.tokens.prompt > main.tokens.prompt ? each : main))
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
    turns: sumOf(prompts, ({ turns }) => turns),
    tokens: {
      prompt: sumOf(prompts, ({ tokens }) => tokens.prompt),
      output: sumOf(prompts, ({ tokens }) => tokens.output),
      cached: sumOf(prompts, ({ tokens }) => tokens.cached),
    },
    // Of the prompt with most of the tokens.
    kv: {
      pod: pod ?? null,
      stored: kv === undefined ? null : { tokens: kv.tokens, bytes: kv.bytes, turn: kv.turn },
      note: kvStatus ?? null,
    },
  }
}

const sumOf = (records: readonly SessionRecord[], count: (record: SessionRecord) => number): number =>
  records.reduce((sum, record) => sum + count(record), 0)
