import * as z from 'zod'

const slotSchema = z
  .object({
    id: z.number().int().nonnegative(),
    is_processing: z.boolean(),
    id_task: z.number().int().optional(),
    n_prompt_tokens: z.number().int().nonnegative().optional(),
    params: z.object({ n_keep: z.number().optional() }).optional(),
  })
  .transform((slot) => ({
    id: slot.id,
    busy: slot.is_processing,
    /** Number of the last completion that ran there, unique while the engine's process lives; undefined: none did. */
    task: slot.id_task === undefined || slot.id_task < 0 ? undefined : slot.id_task,
    /** Tokens whose KV the slot holds; undefined until the slot's first completion. */
    tokens: slot.n_prompt_tokens,
    /** `n_keep` of the last request that ran there; undefined where the engine does not repeat a request's parameters. */
    keep: slot.params?.n_keep,
  }))

/** One slot as its engine reports it. */
export type SlotSnapshot = Readonly<z.output<typeof slotSchema>>

/** The answer to `GET /slots`. */
export const slotsAnswer = z.array(slotSchema)

/** The tokens of a completion's prompt that were not computed. */
export const completionAnswer = z
  .object({ usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }) }) })
  .transform(({ usage }) => usage.prompt_tokens_details.cached_tokens)

/** The answer to `action=save`. */
export const saveAnswer = z
  .object({ id_slot: z.int(), n_saved: z.int().nonnegative(), n_written: z.int().nonnegative() })
  .transform((answer) => ({ slot: answer.id_slot, tokens: answer.n_saved, bytes: answer.n_written }))
export type SavedSlot = z.output<typeof saveAnswer>

/** The answer to `action=restore`. */
export const restoreAnswer = z
  .object({ id_slot: z.int(), n_restored: z.int().nonnegative() })
  .transform((answer) => ({ slot: answer.id_slot, tokens: answer.n_restored }))

/** The answer to `action=erase`. */
export const eraseAnswer = z
  .object({ id_slot: z.int(), n_erased: z.int().nonnegative() })
  .transform((answer) => ({ slot: answer.id_slot, tokens: answer.n_erased }))
