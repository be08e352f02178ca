import { nameOfTenant } from '../sessions/session-directory.ts'
import { digestOf } from '../sessions/session-record.ts'
import type { WholeSession } from '../sessions/session-store.ts'
import { mainPromptOf, promptsOf, totalsOf } from '../sessions/session-totals.ts'
import type { SessionTimelines } from './session-timelines.ts'

/** A session as operators see it: no id, and nothing of a prompt. The prompts of a name are added up. */
export const sessionView = (session: WholeSession, timelines: SessionTimelines) => {
  const prompts = promptsOf(session)
  const { turns, tokens } = totalsOf(prompts)
  const { pod, kv, kvStatus } = mainPromptOf(session)
  return {
    digest: digestOf(session.key),
    tenant: nameOfTenant(session.tenant),
    model: session.model,
    namedBy: timelines.namedByOf(session.key) ?? null,
    createdAt: new Date(session.createdAtMs).toISOString(),
    expiresAt: new Date(session.expiresAtMs).toISOString(),
    ttlSeconds: session.ttlSeconds,
    turns,
    tokens,
    prompts: prompts.length,
    pod: pod ?? null,
    kv: kv === undefined ? null : { tokens: kv.tokens, bytes: kv.bytes, turn: kv.turn },
    kvStatus: kvStatus ?? null,
  }
}
