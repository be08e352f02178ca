import type { SessionRecord, TokenTotals } from './session-record.ts'
import type { WholeSession } from './session-store.ts'

/** The records of all prompts of a session: its own, and those of its branches. */
export const promptsOf = (session: WholeSession): readonly SessionRecord[] => [session, ...session.branches]

/** The prompt with most of the tokens: where the session's KV is. */
export const mainPromptOf = (session: WholeSession): SessionRecord =>
  promptsOf(session).reduce((main, each) => (each.tokens.prompt > main.tokens.prompt ? each : main))

/** Sums over records. `storedBytes`: of stored KV. */
export const totalsOf = (
  records: readonly SessionRecord[],
): { readonly turns: number; readonly tokens: TokenTotals; readonly storedBytes: number } => {
  const sumOf = (count: (record: SessionRecord) => number): number =>
    records.reduce((sum, record) => sum + count(record), 0)
  return {
    turns: sumOf(({ turns }) => turns),
    tokens: {
      prompt: sumOf(({ tokens }) => tokens.prompt),
      output: sumOf(({ tokens }) => tokens.output),
      cached: sumOf(({ tokens }) => tokens.cached),
    },
    storedBytes: sumOf(({ kv }) => kv?.bytes ?? 0),
  }
}
