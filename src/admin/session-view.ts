import { tenantNameLength } from '../sessions/session-directory.ts'
import { digestOf, type SessionRecord } from '../sessions/session-record.ts'
import type { WholeSession } from '../sessions/session-store.ts'
import type { SessionTimelines } from './session-timelines.ts'

/** A session as operators see it: no id, and nothing of a prompt. The prompts of a name are added up. */
export const sessionView = (session: WholeSession, timelines: SessionTimelines) => {
  const prompts: readonly SessionRecord[] = [session, ...session.branches]
  const { pod, kv, kvStatus } = prompts.reduce((main, each) => (each.tokens.prompt > main.tokens.prompt ? each : main))
  const sumOf = (count: (record: SessionRecord) => number): number =>
    prompts.reduce((sum, record) => sum + count(record), 0)
  return {
    digest: digestOf(session.key),
    tenant: session.tenant.slice(0, tenantNameLength),
    model: session.model,
    namedBy: timelines.namedByOf(session.key) ?? null,
    createdAt: new Date(session.createdAtMs).toISOString(),
    expiresAt: new Date(session.expiresAtMs).toISOString(),
    ttlSeconds: session.ttlSeconds,
    turns: sumOf(({ turns }) => turns),
    tokens: {
      prompt: sumOf(({ tokens }) => tokens.prompt),
      output: sumOf(({ tokens }) => tokens.output),
      cached: sumOf(({ tokens }) => tokens.cached),
    },
    prompts: prompts.length,
    pod: pod ?? null,
    kv: kv === undefined ? null : { tokens: kv.tokens, bytes: kv.bytes, turn: kv.turn },
    kvStatus: kvStatus ?? null,
  }
}
