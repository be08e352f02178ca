import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { nanoid } from 'nanoid'
import type { FormerSecret } from '../crypto/former-secret.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { StartingTurn } from './kv-connector.ts'

/** Who shares KV: the sessions of a tenant, so that a common system prompt is computed and stored once, or nobody. */
export type Isolation = 'tenant' | 'session'

/** What KV belongs to. Everything in it makes KV of its own. */
export interface SaltScope {
  readonly tenant: TenantKey
  /** Undefined: shared by the tenant's sessions. */
  readonly session: { readonly key: SessionKey; readonly life: string } | undefined
  /** The model or adapter as the client names it. */
  readonly model: string
  /** Changes with the engine's build, model and KV layout. */
  readonly fingerprint: string
}

/** Names a session's present life, so that one that starts anew under its id never meets the KV of a former one. */
export const lifeOf = (
  turn: Pick<StartingTurn, 'restarted' | 'createdAtMs'>,
  storedLife: string | undefined,
): string => {
  if (turn.restarted) return nanoid(8)
  return storedLife ?? (turn.createdAtMs === undefined ? '' : turn.createdAtMs.toString(36))
}

const saltLength = 32

/**
 * The namespaces of KV in engines and store (vLLM's and LMCache's `cache_salt`): 32 hex characters. Nobody can guess
 * one without the gateway's secret, and a client's own value is overwritten.
 */
export interface CacheSalts {
  /** For the sessions that share the scope. */
  of(scope: SaltScope): string
  /** For a tenant's turn without a session. Per session: one that nobody meets again. */
  withoutSession(tenant: TenantKey, isolation: Isolation): string
}

/** `former`: tenants of another secret have the salts of that one. */
export const createCacheSalts = (secret: string, former?: Pick<FormerSecret, 'secret' | 'has'>): CacheSalts => {
  const createSalts = (key: string) => {
    const saltOf = (scope: string): string =>
      createHmac('sha256', key).update(`cache salt\n${scope}`).digest('hex').slice(0, saltLength)
    // A tenant's turns ask for the same few, and each turn twice.
    return new LRUCache<string, string>({ max: 1_000, memoMethod: saltOf })
  }
  const own = createSalts(secret)
  const ofFormer = former && createSalts(former.secret)
  const saltsOf = (tenant: TenantKey) => (former?.has(tenant) === true ? ofFormer : undefined) ?? own
  return {
    of: ({ tenant, session, model, fingerprint }) =>
      saltsOf(tenant).memo(
        JSON.stringify(['session', tenant, session?.key ?? '', session?.life ?? '', model, fingerprint]),
      ),
    withoutSession: (tenant, isolation) => {
      if (isolation === 'tenant') return saltsOf(tenant).memo(JSON.stringify(['none', tenant, '']))
      return randomBytes(saltLength / 2).toString('hex')
    },
  }
}
