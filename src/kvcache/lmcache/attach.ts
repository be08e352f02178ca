import { untilAborted } from '../../async/deadline.ts'
import type { StoredKv } from '../../sessions/session-record.ts'
import { lifeOf } from '../cache-salts.ts'
import type { AttachOutcome, KvPresence, KvTurn } from '../kv-connector.ts'
import { reportWholeTurn } from '../kv-events/kv-events.ts'
import type { ContentKey } from '../vault/token-vault.ts'
import { type BaseArtefact, encodeClaim } from './claim.ts'
import type { EngineFacts } from './engine-facts.ts'
import { keepOpening } from './keep-opening.ts'
import { bringToPod } from './load.ts'
import type { Parts } from './parts.ts'
import { parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Gives the turn its salt, and brings the session's KV to its pod. */
export const attach = async (
  parts: Parts,
  turn: KvTurn,
  kv: StoredKv | undefined,
  signal: AbortSignal,
): Promise<AttachOutcome> => {
  const contentKey = turn.contentKey?.()
  // The salt depends on what engine it is; without it the turn must still not meet anybody's KV.
  const alone = (presence: KvPresence): AttachOutcome => ({
    presence,
    fields: { cache_salt: parts.salts.withoutSession(turn.tenant, 'session'), session_id: turn.turnId },
    claim: '',
  })
  if (!parts.pods().includes(turn.pod)) return alone({ kind: 'failed', cause: new Error('the pod is not configured') })
  if (contentKey === undefined) return alone({ kind: 'failed', cause: new Error('the turn has no content key') })

  let facts: EngineFacts
  try {
    facts = await parts.engines.of(turn.pod, turn.model, signal)
  } catch (cause) {
    return alone(signal.aborted ? { kind: 'timed-out' } : { kind: 'failed', cause })
  }
  const stored = kv === undefined ? undefined : parseStoredPrefix(kv.payload)
  const { salt, life, isOwnSalt } = saltOf(parts, turn, facts, stored)
  const claim = encodeClaim({
    salt,
    life,
    isOwnSalt,
    modelRoot: facts.modelRoot,
    blockTokens: facts.blockTokens,
    hasEvents: facts.hasEvents,
    contentKey,
    base: stored?.salt === salt && kv !== undefined ? baseOf(kv, stored, facts) : undefined,
    isCreate: turn.opening !== undefined,
  })
  if (turn.opening !== undefined) keepOpening(parts, { ...turn, opening: turn.opening, contentKey })

  const opening = parts.ledger.open({ salt, turnId: turn.turnId, leaseMs: parts.limits.leaseMs })
  const bringing = bring(parts, { turn, kv, stored, salt, contentKey }, signal)
  const [opened, presence] = await Promise.all([
    untilAborted(
      opening.then(
        () => undefined,
        (cause: unknown) => ({ cause }),
      ),
      signal,
      () => ({ cause: new Error('the chunk ledger did not answer in time') }),
    ),
    bringing,
  ])
  // Without an entry in the ledger, nobody would find what the turn leaves if the gateway died.
  if (opened !== undefined) return alone({ kind: 'failed', cause: opened.cause })
  const reported = facts.hasEvents ? reportWholeTurn : {}
  return { presence, fields: { cache_salt: salt, session_id: turn.turnId, ...reported }, claim }
}

const baseOf = (kv: StoredKv, { artefactId }: StoredPrefix, facts: EngineFacts): BaseArtefact => ({
  artefactId,
  tokens: kv.tokens,
  stored: facts.hasEvents ? undefined : { payload: kv.payload, bytes: kv.bytes },
})

const bring = async (
  parts: Parts,
  known: {
    readonly turn: KvTurn
    readonly kv: StoredKv | undefined
    readonly stored: StoredPrefix | undefined
    readonly salt: string
    readonly contentKey: ContentKey
  },
  signal: AbortSignal,
): Promise<KvPresence> => {
  const { kv, stored } = known
  if (kv === undefined) return { kind: 'empty' }
  // Another build, model or deployment stored it, or it cannot be read: it never loads again.
  if (stored === undefined || stored.salt !== known.salt) return { kind: 'missing' }
  if (signal.aborted) return { kind: 'timed-out' }
  return bringToPod(parts, { pod: known.turn.pod, kv, stored, contentKey: known.contentKey }, signal)
}

/** A session that starts anew gets a salt of a new life; what is stored tells in which life the session is. */
const saltOf = (
  parts: Parts,
  turn: KvTurn,
  facts: EngineFacts,
  stored: StoredPrefix | undefined,
): { readonly salt: string; readonly life: string; readonly isOwnSalt: boolean } => {
  // What has no name can only be deleted with everything else of its salt, which then must be the session's own.
  const perSession = parts.isolation === 'session' || !facts.hasEvents
  const life = perSession ? lifeOf(turn, stored?.life) : ''
  const session = perSession ? { key: turn.session, life } : undefined
  const salt = parts.salts.of({ tenant: turn.tenant, session, model: turn.model, fingerprint: facts.fingerprint })
  return { salt, life, isOwnSalt: perSession }
}
