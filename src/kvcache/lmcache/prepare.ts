import type { KvArtefact, Prepared, StartingTurn } from '../kv-connector.ts'
import { reportWholeTurn } from '../kv-events/kv-events.ts'
import { lifeFor, saltOf } from './claim.ts'
import type { Parts } from './parts.ts'
import { presenceOf } from './presence.ts'
import { parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Gives the turn its salt, and looks what of the session's KV its pod can load. The engine loads by itself. */
export const prepare = async (parts: Parts, turn: StartingTurn, signal: AbortSignal): Promise<Prepared> => {
  if (!parts.pods().includes(turn.pod)) throw new Error('the pod is not configured')
  const [engine, store] = await Promise.all([parts.engines.of(turn.pod, turn.model, signal), parts.identity.name()])
  const facts = { ...engine, store }
  const prefix = turn.stored === undefined ? undefined : parseStoredPrefix(turn.stored.payload)
  const life = lifeFor(parts, turn, { hasEvents: facts.hasEvents, storedLife: prefix?.life })
  const salt = saltOf(parts, turn, { ...facts, life })
  const presence = await presenceOf(parts, { pod: turn.pod, stored: turn.stored, prefix, salt }, signal)
  // What is not listed is stored again.
  const isMissing = presence.kind === 'miss' && presence.reason === 'kv_missing'
  const isBase = turn.stored !== undefined && prefix?.salt === salt && !isMissing
  return {
    presence,
    fields: { cache_salt: salt, session_id: turn.turnId, ...(facts.hasEvents ? reportWholeTurn : {}) },
    claim: { ...facts, life, ...(isBase ? { base: baseOf(prefix, turn.stored) } : {}) },
  }
}

const baseOf = ({ chunks, chunkTokens }: StoredPrefix, { tokens }: KvArtefact) => {
  const arrived = chunks.slice(0, Math.floor(tokens / chunkTokens))
  return { chunks: arrived.length, lastChunk: arrived.at(-1) ?? '', tokens }
}
