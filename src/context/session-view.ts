import type { SessionRecord } from '../sessions/session-record.ts'

/** A session as clients see it: what it is and what it costs, never what was said. Times in whole seconds since 1970, as OpenAI's objects have them. */
export const sessionView = (id: string, record: SessionRecord): unknown => ({
  id,
  object: 'context',
  model: record.model,
  created_at: Math.floor(record.createdAtMs / 1000),
  expires_at: Math.floor(record.expiresAtMs / 1000),
  ttl: record.ttlSeconds,
  turns: record.turns,
  tokens: record.tokens,
  kv: {
    pod: record.pod ?? null,
    stored: record.kv === undefined ? null : { tokens: record.kv.tokens, bytes: record.kv.bytes, turn: record.kv.turn },
    note: record.kvNote ?? null,
  },
})
