import { commonPrefixLength } from './token-prefix.ts'

/** An idle slot as the choice sees it. */
export interface IdleSlot {
  readonly id: number
  /** Tokens whose KV it holds. */
  readonly tokens: readonly number[]
  /** Hash of the salt under which they were computed, empty for none. */
  readonly saltHash: string
  /** Number of the last task that ran in it, -1 for none. */
  readonly lastTaskId: number
}

/** What the request would reuse. */
export interface WantedPrefix {
  readonly tokens: readonly number[]
  readonly saltHash: string
}

/**
 * Share of a prompt that a slot must already hold for the request to go there. Below it, the KV that the slot would
 * lose is worth more than what the request gains.
 */
export const reuseThreshold = 0.5

/**
 * Chooses among idle slots: the one holding the most of the prompt under the same salt, if that reaches the threshold,
 * else the one unused for longest.
 */
export function pickSlot(idleSlots: readonly IdleSlot[], wanted: WantedPrefix): number | undefined {
  const matches = idleSlots
    .filter((slot) => slot.saltHash === wanted.saltHash)
    .map((slot) => ({ id: slot.id, length: commonPrefixLength(slot.tokens, wanted.tokens) }))
    .filter(({ length }) => length >= reuseThreshold * wanted.tokens.length && length > 0)
    .sort((a, b) => b.length - a.length)
  return (matches[0] ?? [...idleSlots].sort((a, b) => a.lastTaskId - b.lastTaskId)[0])?.id
}
