import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'
import type { NewSession } from '../../../src/sessions/session-store.ts'
import { retryDigest, sessionKey, tenantKey } from '../../contract/sessions/store-under-test.ts'
import { type StoreOperation, unitMs, unitSeconds } from './store-operation.ts'

export const tenants = [tenantKey('alice'), tenantKey('mallory')] as const
/** The session that a name chooses. */
export const named = sessionKey('named')
/** That of the same name, by another secret. */
export const otherNamed = sessionKey('other-named')
/** What operations are about, by number: sessions that are created, the one that a name chooses, and those to fork to. */
export const exercised = ['0-session', '1-session', 'named', 'f-session', 'f-named', 'g-session'].map(sessionKey)

/** A fork's key lies together with that of the session. */
export const forkOf = (session: number, isOther: boolean): SessionKey => {
  const name = session === 2 || session === 4 ? 'f-named' : isOther ? 'g-session' : 'f-session'
  return sessionKey(name)
}

export interface Turn {
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly turnId: string
}

export const turnOf = (operation: StoreOperation): Turn => {
  return {
    key: exercised[operation.session] ?? named,
    tenant: tenants[operation.tenant] ?? tenants[0],
    turnId: `turn-${operation.turn}`,
  }
}

export const newSessionOf = (operation: StoreOperation): NewSession => {
  return {
    // Nobody creates a session of a name in another way.
    ...turnOf({ ...operation, session: operation.session % 2 }),
    sealedId: `sealed${operation.text}`,
    model: `model${operation.text}`,
    ttlSeconds: operation.time * unitSeconds,
    pod: operation.count === 1 ? undefined : `pod-${operation.count}:8000`,
    leaseMs: operation.otherTime * unitMs,
    retryOf:
      operation.retry === 'none'
        ? undefined
        : {
            // A digest covers the tenant.
            digest: `${retryDigest}-${operation.tenant}-${operation.digest}`,
            bodyDigest: `body-${operation.body}`,
            rememberMs: operation.count * 2 * unitMs,
            use: operation.retry,
          },
  }
}
