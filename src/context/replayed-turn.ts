import type { SessionRecord } from '../sessions/session-record.ts'
import { type SessionStore, StoreUnavailableError, type TurnExpiry } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'
import type { CachedAnswer } from './replay-answer.ts'

/**
 * Counts a turn that an earlier answer is sent for: no pod and no engine has to do with it, so that the session stays where it lies and keeps
 * the KV that it has. Never rejects: the answer is there whatever becomes of the count.
 */
export const completeReplayedTurn = async (
  parts: { readonly store: Pick<SessionStore, 'complete'>; readonly events: ContextEvents },
  turn: {
    readonly record: Pick<SessionRecord, 'key' | 'tenant'>
    readonly pod: string
    readonly turnId: string
    readonly expiry: TurnExpiry
  },
  { response: { usage } }: CachedAnswer,
): Promise<void> => {
  const { record, pod, turnId, expiry } = turn
  try {
    const completed = await parts.store.complete({
      key: record.key,
      tenant: record.tenant,
      turnId,
      pod,
      usage: {
        prompt: usage?.promptTokens ?? 0,
        output: usage?.outputTokens ?? 0,
        cached: usage?.cachedTokens ?? 0,
      },
      expiry,
    })
    parts.events.turnEnded(completed.kind === 'gone' ? 'gone' : 'completed', usage)
  } catch (error) {
    // The turn's lease runs out by itself.
    if (error instanceof StoreUnavailableError) parts.events.storeFault('complete', error)
    else parts.events.fault('complete', error)
  }
}
