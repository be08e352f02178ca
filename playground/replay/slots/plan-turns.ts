import { createConversations } from '../conversations.ts'
import type { TraceRequest } from '../trace.ts'

/** A request of the trace, and what follows it in its conversation. */
export interface PlannedTurn {
  readonly request: TraceRequest
  readonly conversation: string
  /** Undefined: it is the conversation's first turn. */
  readonly before: TraceRequest | undefined
  readonly next: PlannedTurn | undefined
}

/** Finds the conversations in a trace: its requests in their order, each with its neighbours. */
export const planTurns = (
  trace: readonly TraceRequest[],
): { readonly plan: readonly PlannedTurn[]; readonly conversations: number } => {
  const conversations = createConversations()
  const latest = new Map<string, Linked>()
  const plan = trace.map((request): Linked => {
    const conversation = conversations.recognise(request)
    const before = latest.get(conversation)
    const turn: Linked = { request, conversation, before: before?.request, next: undefined }
    if (before !== undefined) before.next = turn
    latest.set(conversation, turn)
    return turn
  })
  return { plan, conversations: conversations.count }
}

type Linked = PlannedTurn & { next: PlannedTurn | undefined }
