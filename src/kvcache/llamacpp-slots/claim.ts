import * as z from 'zod'

/** The slot that a turn holds. It travels with the turn, perhaps to another gateway process. */
export const slotClaim = z.object({
  pod: z.string(),
  /** -1: it holds none, and the engine chooses one. */
  slot: z.int().min(-1),
  /** The last completion that ran in the slot, or in any where it holds none, before the turn; -1: none. */
  previousTask: z.int(),
  /** Sent as `n_keep`: engines report it with the slot, and use it only with `--context-shift`, without stored KV. */
  tag: z.int(),
  /** Of the engine, or {@link unknownEngine}; it names the artefact that the turn leaves. */
  fingerprint: z.string(),
})

/** The engine did not answer before the turn: Envoy may send the turn to another one. */
export const unknownEngine = ''

export type SlotClaim = z.infer<typeof slotClaim>

/** Below any context length, to which older builds of llama-server reduce it. */
export const maxTag = 1_000

/** Body fields, the same for all, of a request that must start from no session's KV: any slot, and nothing reused. */
export const fieldsWithoutSlot = { id_slot: -1, cache_prompt: false } as const
