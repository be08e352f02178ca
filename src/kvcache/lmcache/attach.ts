import type { StoredKv } from '../../sessions/session-record.ts'
import type { AttachOutcome, KvPresence, KvTurn } from '../kv-connector.ts'
import { reportWholeTurn } from '../kv-events/kv-events.ts'
import { type Claim, encodeClaim, lifeFor, saltOf } from './claim.ts'
import type { EngineFacts } from './engine-facts.ts'
import type { Parts } from './parts.ts'
import { presenceOf } from './presence.ts'
import { parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Gives the turn its salt, and looks what of the session's KV its pod can load. The engine loads by itself. */
export const attach = async (
  parts: Parts,
  turn: KvTurn,
  kv: StoredKv | undefined,
  signal: AbortSignal,
): Promise<AttachOutcome> => {
  // The salt depends on what engine it is; without it the turn must still not meet anybody's KV.
  const alone = (presence: KvPresence): AttachOutcome => ({
    presence,
    fields: { cache_salt: parts.salts.withoutSession(turn.tenant, 'session'), session_id: turn.turnId },
    claim: '',
  })
  if (!parts.pods().includes(turn.pod)) return alone({ kind: 'failed', cause: new Error('the pod is not configured') })

  let facts: EngineFacts
  try {
    facts = await parts.engines.of(turn.pod, turn.model, signal)
  } catch (cause) {
    return alone(signal.aborted ? { kind: 'timed-out' } : { kind: 'failed', cause })
  }
  const stored = kv === undefined ? undefined : parseStoredPrefix(kv.payload)
  const life = lifeFor(parts, turn, { hasEvents: facts.hasEvents, storedLife: stored?.life })
  const salt = saltOf(parts, turn, { ...facts, life })
  const presence = await presenceOf(parts, { pod: turn.pod, kv, stored, salt }, signal)
  // What is not listed is stored again.
  const isBase = stored?.salt === salt && kv !== undefined && presence.kind !== 'missing'
  const claim = encodeClaim({ ...facts, life, base: isBase ? baseOf(stored, kv.tokens) : undefined })
  const fields = { cache_salt: salt, session_id: turn.turnId, ...(facts.hasEvents ? reportWholeTurn : {}) }
  return { presence, fields, claim }
}

const baseOf = ({ chunks, chunkTokens }: StoredPrefix, tokens: number): Claim['base'] => {
  const arrived = chunks.slice(0, Math.floor(tokens / chunkTokens))
  return { chunks: arrived.length, lastChunk: arrived.at(-1) ?? '', tokens }
}
