import * as z from 'zod'
import { withinLimit } from '../../async/deadline.ts'
import { askEngine } from '../../engines/ask-engine.ts'
import { createEngineHttp, type EngineAccess, type EngineReply } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'

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
    /** `n_keep` of the last request that ran there; undefined if the engine does not repeat parameters. */
    keep: slot.params?.n_keep,
  }))

/** One slot as its engine reports it. */
export type SlotSnapshot = Readonly<z.output<typeof slotSchema>>

/** The answer to `GET /slots`. */
export const slotsAnswer = z.array(slotSchema)

/** The answer to `action=save`. */
export const saveAnswer = z
  .object({ id_slot: z.int(), n_saved: z.int().nonnegative(), n_written: z.int().positive() })
  .transform((answer) => ({ slot: answer.id_slot, tokens: answer.n_saved, bytes: answer.n_written }))
export type SavedSlot = z.output<typeof saveAnswer>

/** The answer to `action=restore`. */
export const restoreAnswer = z
  .object({ id_slot: z.int(), n_restored: z.int().nonnegative() })
  .transform((answer) => ({ slot: answer.id_slot, tokens: answer.n_restored }))

/** The answer to `action=erase`. */
export const eraseAnswer = z.object({ id_slot: z.int(), n_erased: z.int().nonnegative() })

/** How an action on a slot ended. */
export type ActionEnd<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The engine said no with this status. After a refused restore the slot is empty. */
  | { readonly kind: 'refused'; readonly status: number; readonly cause: unknown }
  /** It never reached the engine. */
  | { readonly kind: 'unsent'; readonly cause: unknown }
  /** Nobody knows whether it was or will be done. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

export interface SlotAddress {
  readonly pod: string
  readonly slot: number
}

/** Calls at a time to one engine; questions and actions count apart. */
const callsPerPod = 4

/**
 * llama-server's `/slots` dialect. Questions reject when the engine does not answer. Actions never reject, and have no
 * signal: an engine carries out an action that it has taken, even when the caller hangs up, once the slot is idle.
 */
export interface SlotClient {
  /**
   * Resolves to the engine's JSON. No such path: undefined, where the schema takes it.
   * @throws if the engine does not answer
   */
  ask<T>(
    question: { readonly pod: string; readonly path: string; readonly body?: unknown },
    schema: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T>
  /** Writes what the slot holds to `file` in the engine's slot folder. */
  save(slot: SlotAddress, file: string): Promise<ActionEnd<SavedSlot>>
  /** Replaces what the slot holds by the content of `file`. */
  restore(slot: SlotAddress, file: string): Promise<ActionEnd<z.output<typeof restoreAnswer>>>
  /** Empties the slot. */
  erase(slot: SlotAddress): Promise<ActionEnd<z.output<typeof eraseAnswer>>>
  /** Closes all connections. */
  close(): Promise<void>
}

export const createSlotClient = (options: {
  /** How long a question may keep its caller waiting. */
  readonly callTimeoutMs: number
  /** How long an action may take: a busy engine saves a slot between two batches, which may take it minutes. */
  readonly lateTimeoutMs: number
  /** Default: plain HTTP without a credential. */
  readonly access?: EngineAccess | undefined
}): SlotClient => {
  const { callTimeoutMs, lateTimeoutMs, access } = options
  // A late action holds its connection; questions must not queue behind it.
  const queries = createEngineHttp({ callsPerPod, access })
  const actions = createEngineHttp({ callsPerPod, access })

  const ask = async <T>(
    question: { readonly pod: string; readonly path: string; readonly body?: unknown },
    schema: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T> => {
    const work = (limited: AbortSignal) => askEngine(queries, { ...question, signal: limited })
    return schema.parse(readJson((await withinLimit(callTimeoutMs, work, signal)) ?? ''))
  }

  const act = async <T>(
    { pod, slot }: SlotAddress,
    action: { readonly name: string; readonly file?: string; readonly schema: z.ZodType<T> },
  ): Promise<ActionEnd<T>> => {
    const path = `/slots/${slot}?action=${action.name}`
    const body = { filename: action.file }
    const work = (signal: AbortSignal) => actions.call({ method: 'POST', pod, path, body, signal })
    return toEnd(await withinLimit(lateTimeoutMs, work), action.schema)
  }

  return {
    ask,
    save: (slot, file) => act(slot, { name: 'save', file, schema: saveAnswer }),
    restore: (slot, file) => act(slot, { name: 'restore', file, schema: restoreAnswer }),
    erase: (slot) => act(slot, { name: 'erase', schema: eraseAnswer }),
    close: async () => {
      await Promise.all([queries.close(), actions.close()])
    },
  }
}

const toEnd = <T>(reply: EngineReply, schema: z.ZodType<T>): ActionEnd<T> => {
  if (reply.kind === 'unsent') return reply
  if (reply.kind === 'broken') return { kind: 'unknown', cause: reply.cause }
  const { status, text } = reply
  if (status !== 200) {
    // An engine's error text is its own, without anything of a prompt; it is cut short all the same.
    return { kind: 'refused', status, cause: new Error(`the engine answered ${status}: ${text.slice(0, 200)}`) }
  }
  const answer = schema.safeParse(readJson(text))
  return answer.success ? { kind: 'done', value: answer.data } : { kind: 'unknown', cause: answer.error }
}
