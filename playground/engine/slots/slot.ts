import type { TokenSequence } from '../runtime/inference-runtime.ts'

/** A place for one sequence. Whoever was granted the slot by the scheduler, and nobody else, changes it. */
export interface Slot {
  readonly id: number
  readonly sequence: TokenSequence
  /** Hash of the cache salt under which the tokens were computed, empty for none. */
  saltHash: string
  /** Hash of the `x-session-id` of the last request, null when it had none or the content came from a file. */
  sessionHash: string | null
  /** Number of the last task that changed the content, -1 for none. */
  lastTaskId: number
}

/** Creates an empty slot. */
export function createSlot(id: number, sequence: TokenSequence): Slot {
  return { id, sequence, saltHash: '', sessionHash: null, lastTaskId: -1 }
}
