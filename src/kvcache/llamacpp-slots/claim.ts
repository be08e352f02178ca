import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'

const slotSchema = z.object({
  pod: z.string(),
  slot: z.int().nonnegative(),
  /** The last completion that ran in the slot before the turn; undefined: none. */
  previousTask: z.int().optional(),
  /** The number by which the turn is known in its slot. */
  tag: z.int(),
  /** Of the engine; it names the artefact that the turn leaves. */
  fingerprint: z.string(),
})
/** The turn holds no slot. `reason` is what its offload says. */
const noneSchema = z.object({ reason: z.string() })
const claimSchema = z.union([slotSchema, noneSchema])

/** The slot that a turn took. */
export type SlotClaim = Readonly<z.infer<typeof slotSchema>>

/** What a turn took in `attach`; travels with the turn, perhaps to another gateway process. */
export type Claim = SlotClaim | Readonly<z.infer<typeof noneSchema>>

export const formatClaim = (claim: Claim): string => JSON.stringify(claim)

/** A claim that cannot be read counts as none. */
export const parseClaim = (text: string): Claim =>
  claimSchema.safeParse(readJson(text)).data ?? { reason: 'not_attached' }
