import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'

/** What a turn took in `attach`; travels with the turn, perhaps to another gateway process. */
export type SlotClaim =
  | {
      readonly kind: 'slot'
      readonly pod: string
      readonly slot: number
      /** The last completion that had run in the slot when the turn was forwarded; undefined: none. */
      readonly taskBefore: number | undefined
      /** The number by which the turn is known in its slot; undefined in claims of earlier versions. */
      readonly turnMark: number | undefined
    }
  /** Nothing was taken, so nothing can be stored. `reason` is what the offload will say. */
  | {
      readonly kind: 'none'
      readonly reason: string
      /** The last completion that had run in each slot, by slot; undefined: the engine could not be asked. */
      readonly tasksBefore: TasksBySlot | undefined
    }

/** Slots in which nothing ran are left out. */
export type TasksBySlot = Readonly<Record<string, number>>

const claimSchema = z.union([
  z.object({
    pod: z.string(),
    slot: z.number().int().nonnegative(),
    task: z.number().int().optional(),
    mark: z.number().int().optional(),
  }),
  z.object({ reason: z.string(), tasks: z.record(z.string(), z.number().int()).optional() }),
])

export const formatClaim = (claim: SlotClaim): string => {
  switch (claim.kind) {
    case 'slot':
      return JSON.stringify({ pod: claim.pod, slot: claim.slot, task: claim.taskBefore, mark: claim.turnMark })
    case 'none':
      return JSON.stringify({ reason: claim.reason, tasks: claim.tasksBefore })
  }
}

/** A claim that cannot be read counts as none. */
export const parseClaim = (text: string): SlotClaim => {
  const parsed = claimSchema.safeParse(readJson(text))
  if (!parsed.success) return { kind: 'none', reason: 'not_attached', tasksBefore: undefined }
  if ('reason' in parsed.data) {
    return { kind: 'none', reason: parsed.data.reason, tasksBefore: parsed.data.tasks }
  }
  const { pod, slot, task, mark } = parsed.data
  return { kind: 'slot', pod, slot, taskBefore: task, turnMark: mark }
}
