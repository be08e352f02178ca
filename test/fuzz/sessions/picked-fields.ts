import type { SessionKey, SessionRecord } from '../../../src/sessions/session-record.ts'
import type { WholeSession } from '../../../src/sessions/session-store.ts'
import type { ModelSession } from './model-session.ts'

/** The fields of a session that are compared; none without a session. */
export const pick = <T extends SessionRecord | ModelSession, K extends keyof T>(
  from: T | undefined,
  names: readonly K[],
): Partial<Pick<T, K>> => {
  const picked: Partial<Pick<T, K>> = {}
  for (const name of names) {
    if (from !== undefined) picked[name] = from[name]
  }
  return picked
}

/** Keys of a session's branches beside the first. */
export const branchesOf = (record: WholeSession | undefined): readonly SessionKey[] =>
  (record?.branches ?? []).map(({ key }) => key)
