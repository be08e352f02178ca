import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { deriveKey } from '../crypto/seal.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { Decision, GatewayRequest, RequestScope } from './context-cache-manager.ts'
import { lookUp } from './context-events.ts'
import { createContinueSession } from './continue-session.ts'
import type { ConversationName } from './conversation-name.ts'
import type { ActiveTurns } from './end-turn.ts'
import type { NamedPrompt } from './named-prompt.ts'
import { checkSpliceable, parseTtlHeader, type TtlBounds, turnIdFor } from './request-headers.ts'
import type { CacheHit } from './response-cache-handler.ts'
import { type SessionIdCipher, sessionKeyOf } from './session-id.ts'
import type { TurnParts } from './session-turn.ts'
import type { Tenants } from './tenant.ts'
import { abandonTurn } from './turn.ts'
import type { TurnTicket } from './turn-ticket.ts'
import { runWithoutSession } from './without-session.ts'

/** Of sessions that clients' own names choose. */
export interface ImplicitSettings {
  /** Headers, and members of the body behind `body.`, that may hold a name, in the order in which they count. */
  readonly names: readonly string[]
  /** Time to live. It restarts with every completed turn. */
  readonly ttlSeconds: number
  /** Most sessions of a tenant; beyond, the least recently used one ends. */
  readonly maxPerTenant: number
}

export interface UseNamedSettings extends TtlBounds {
  readonly leaseMs: number
  /** Key of the HMACs that are the sessions' ids. */
  readonly secret: string
  readonly implicit: ImplicitSettings
}

/** A turn of a named conversation. */
export interface NamedTurn {
  readonly request: GatewayRequest
  readonly name: ConversationName
  readonly prompt: NamedPrompt
  /** A new prompt of the name starts from the KV of the one before. Default: false. */
  readonly forksBranch?: boolean
  readonly cached: CacheHit | undefined
  readonly scope: RequestScope
}

/** Ids whose encrypted form is kept: each turn of a session needs it, and to encrypt takes longer than the rest. */
const maxKeptIds = 10_000

/**
 * Handles a turn of the session that a client's own name for its conversation chooses; the first turn creates it.
 * Undefined: the request is to be answered as if it had no name, which whatever is odd about it leads to. It only rejects
 * with `rate_limit_exceeded`, and where the request was cancelled.
 */
export const createUseNamedSession = (
  parts: TurnParts & {
    readonly tenants: Tenants
    readonly sessionIds: SessionIdCipher
    readonly former?: FormerSecret | undefined
    readonly turns: Pick<ActiveTurns, 'completeCached'>
  },
  settings: UseNamedSettings,
): ((turn: NamedTurn) => Promise<Decision<TurnTicket> | undefined>) => {
  const continueSession = createContinueSession(parts)
  const { leaseMs } = settings
  const idOf = createNamedIds(settings.secret)
  const formerIdOf = parts.former && createNamedIds(parts.former.secret)
  const sealedIds = new LRUCache<string, string, Readonly<{ tenant: TenantKey; namedBy: string }>>({
    max: maxKeptIds,
    memoMethod: (id, _stale, { context: { tenant, namedBy } }) => parts.sessionIds.encrypt(id, tenant, namedBy),
  })

  /** What the client asks for, where it is longer than the default and within the bounds. */
  const askedTtl = (request: GatewayRequest, { ttlSeconds = 0 }: NamedPrompt): number | undefined => {
    const longer = ttlSeconds > settings.implicit.ttlSeconds ? Math.min(ttlSeconds, settings.maxTtlSeconds) : undefined
    return orNone(() => parseTtlHeader(request, settings)) ?? longer
  }

  /** A sub-agent's prompt often begins like its parent's. */
  const parentPod = (tenant: TenantKey, model: string, { kind, parent }: ConversationName): string | undefined => {
    if (parent === undefined) return undefined
    const key = sessionKeyOf(idOf({ tenant, model, name: { kind, name: parent } }))
    const resident = [...parts.pools.forModel(model).predictor.residentTokens(key)]
    return resident.toSorted(([, a], [, b]) => b - a)[0]?.[0]
  }

  /** The session of the same name by the other secret, while secrets are rotated. */
  const earlierOf = (request: GatewayRequest, model: string, name: ConversationName) => {
    const tenant = parts.tenants.formerTenantOf(request)
    const id = tenant && formerIdOf?.({ tenant, model, name })
    return tenant === undefined || id === undefined ? undefined : { id, key: sessionKeyOf(id), tenant }
  }

  return async ({ request, name, prompt, forksBranch, cached, scope }) => {
    const tenant = orNone(() => {
      checkSpliceable(request)
      return parts.tenants.tenantOf(request)
    })
    if (tenant === undefined) return undefined
    const { kind: namedBy } = name
    const { model, marks } = prompt
    const id = idOf({ tenant, model, name })
    const turnId = turnIdFor(request)
    const sealedId = sealedIds.memo(id, { context: { tenant, namedBy } })
    const earlier = earlierOf(request, model, name)
    const asked = askedTtl(request, prompt)
    const wanted = { key: sessionKeyOf(id), tenant, turnId, leaseMs, sealedId, model, marks, earlier, forksBranch }
    const { implicit } = settings
    const limits = { ttlSeconds: asked ?? implicit.ttlSeconds, maxNamedSessions: implicit.maxPerTenant }
    const begun = await lookUp(parts.events, parts.store.beginNamed({ ...wanted, ...limits }), namedBy)
    const common = { request, tenant, turnId, namedBy, cached, scope }
    switch (begun.kind) {
      case 'unknown':
      case 'deleted':
      case 'limited':
        return undefined
      case 'store_unavailable':
        return orUnnamed(() => runWithoutSession(parts, { ...common, key: wanted.key, model }, begun.kind))
      case 'created':
      case 'active':
      case 'expired': {
        const key = begun.kind === 'expired' ? wanted.key : begun.record.key
        const isNew = begun.kind !== 'expired' && begun.record.pod === undefined
        const preferredPod = isNew ? parentPod(tenant, model, name) : undefined
        const isEarlier = begun.kind !== 'expired' && begun.record.tenant === earlier?.tenant
        const owned = isEarlier ? { id: earlier.id, tenant: earlier.tenant } : { id, tenant }
        const turn = { ...common, ...owned, key, ttlSeconds: asked, expiry: { kind: 'slide' }, preferredPod } as const
        return orUnnamed(() =>
          continueSession(turn, begun).catch(async (error: unknown) => {
            await abandonTurn(parts, turn)
            throw error
          }),
        )
      }
    }
  }
}

/** No pod, an unknown policy, and the like: nobody asked for a session. */
const orUnnamed = async (decide: () => Promise<Decision<TurnTicket>>): Promise<Decision<TurnTicket> | undefined> => {
  try {
    return await decide()
  } catch (error) {
    if (error instanceof GatewayError && error.code !== 'rate_limit_exceeded') return undefined
    throw error
  }
}

const orNone = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

const idCharacters = 32

/** The id of a session: an HMAC, so that no table keeps names. Another model under one name is another session. */
export const createNamedIds = (secret: string) => {
  const key = deriveKey(secret, 'context-cache session name')
  return ({ tenant, model, name }: { tenant: TenantKey; model: string; name: ConversationName }): string => {
    const text = JSON.stringify([tenant, model, name.kind, name.name])
    return `ctx_${createHmac('sha256', key).update(text).digest('base64url').slice(0, idCharacters)}`
  }
}
