import type { SessionKey } from '../../../src/sessions/session-record.ts'
import type { ForkedSession } from '../../../src/sessions/session-store.ts'
import type { ModelSession } from './model-session.ts'
import type { SessionModel } from './session-model.ts'

/** What a store must do with a fork. */
export const fork = (
  model: SessionModel,
  { from, session: wanted }: ForkedSession,
): 'forked' | 'unknown' | 'limited' => {
  const { tenant } = from
  const parent = model.live(from.key, tenant)
  if (parent === undefined) return 'unknown'
  const present = model.live(wanted.key)
  if (present !== undefined) return present.tenant === tenant ? 'forked' : 'unknown'
  if (model.tenants.limitOfSession(tenant, { isNew: true }) !== undefined) return 'limited'
  const { ttlSeconds = parent.ttlSeconds } = wanted
  const added: ModelSession = {
    ...parent,
    ...wanted,
    ttlSeconds,
    state: 'active',
    createdAtMs: model.nowMs,
    expiresAtMs: model.nowMs + ttlSeconds * 1000,
    tokens: { prompt: 0, output: 0, cached: 0 },
    leases: new Map(),
    retryDigest: undefined,
    isListed: true,
    branches: new Map(),
  }
  model.sessions.set(wanted.key, added)
  model.share(parent, added)
  return 'forked'
}

/** Takes an artefact from all that have it. False: nobody has. */
export const dropArtefact = (model: SessionModel, artefactId: string, reason: string): boolean => {
  for (const { key } of model.holdersOf(artefactId)) model.look(key)
  const holders = model.holdersOf(artefactId)
  for (const session of holders) {
    model.drop(session, model.nowMs)
    session.kvStatus = reason
  }
  return holders.length > 0
}

/** Whether the removal queue or a session names an artefact. */
export const knows = (model: SessionModel, artefactId: string): boolean =>
  model.removals.knows(artefactId) || model.holdersOf(artefactId).length > 0

export const note = (model: SessionModel, key: SessionKey, reason: string): void => {
  const session = model.live(key)
  if (session !== undefined) session.kvStatus = reason
}
