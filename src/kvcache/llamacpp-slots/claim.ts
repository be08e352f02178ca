import * as z from 'zod'

/** The slot that a turn holds. It travels with the turn, perhaps to another gateway process. */
export const slotClaim = z.object({
  pod: z.string(),
  slot: z.int().nonnegative(),
  /** The last completion that ran in the slot before the turn; -1: none. */
  previousTask: z.int(),
  /** The number by which the turn is known in its slot. */
  tag: z.int(),
  /** Of the engine; it names the artefact that the turn leaves. */
  fingerprint: z.string(),
})

export type SlotClaim = z.infer<typeof slotClaim>
