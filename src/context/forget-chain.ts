import { within } from '../async/deadline.ts'
import type { FormerSecret } from '../crypto/former-secret.ts'
import type { ForgottenChain } from '../responses/conversations.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import { chainKind } from './decide-chain.ts'
import type { Reaper } from './reaper.ts'
import { removeSession } from './remove-session.ts'
import { sessionKeyOf } from './session-id.ts'
import { createNamedIds } from './use-named-session.ts'

/**
 * Deletes the implicit sessions of a chain whose text is gone, with their branches and KV: of each model the one that the
 * chain's root names. While secrets are rotated there may be one of each owner. A session that a client named stays.
 */
export type ForgetChain = (owners: readonly (TenantKey | undefined)[], chain: ForgottenChain) => Promise<void>

/** Its function throws StoreUnavailableError. */
export const createForgetChain = (
  parts: Parameters<typeof removeSession>[0] & {
    readonly reaper: Pick<Reaper, 'sweepAndWait'>
    readonly former?: FormerSecret | undefined
  },
  settings: { readonly secret: string; readonly deleteWaitMs: number },
): ForgetChain => {
  const idOf = createNamedIds(settings.secret)
  const formerIdOf = parts.former && createNamedIds(parts.former.secret)
  return async (owners, { root, models }) => {
    const name = { kind: chainKind, name: root }
    const keysOf = (tenant: TenantKey) => {
      const namedId = (parts.former?.has(tenant) === true ? formerIdOf : undefined) ?? idOf
      return models.map((model) => ({ tenant, key: sessionKeyOf(namedId({ tenant, model, name })) }))
    }
    const sessions = owners.flatMap((owner) => (owner === undefined ? [] : keysOf(owner)))
    const removed = await Promise.all(sessions.map((session) => removeSession(parts, session)))
    if (removed.includes(true)) await within(settings.deleteWaitMs, parts.reaper.sweepAndWait())
  }
}
