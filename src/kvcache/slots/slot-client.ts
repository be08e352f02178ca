import type { z } from 'zod'
import { startDeadline, untilAborted } from '../../async/deadline.ts'
import { createEngineHttp, type EngineAccess, type EngineCall, type EngineReply } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'
import {
  completionAnswer,
  eraseAnswer,
  restoreAnswer,
  type SlotSnapshot,
  saveAnswer,
  slotsAnswer,
} from './slot-snapshot.ts'

/** The engine answers 404. */
export class NoSuchPathError extends Error {
  override readonly name = 'NoSuchPathError'
}

/** How an action on a slot ended. */
export type ActionEnd<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The engine said no with this status. After a refused restore the slot is empty. */
  | { readonly kind: 'refused'; readonly status: number; readonly cause: unknown }
  /** It never reached the engine. */
  | { readonly kind: 'unsent'; readonly cause: unknown }
  /** Nobody knows whether it was or will be done. */
  | { readonly kind: 'unknown'; readonly cause: unknown }

/**
 * An engine carries out an action that it has taken, even when the caller hangs up: it waits until the slot is idle. So a call that is late
 * stays open, and `end` tells what became of it in the end.
 */
export type ActionOutcome<T> = ActionEnd<T> | { readonly kind: 'late'; readonly end: Promise<ActionEnd<T>> }

export interface SlotAddress {
  readonly pod: string
  readonly slot: number
}

/**
 * llama-server's `/slots` dialect. Questions reject when the engine does not answer them. Actions never reject: their faults are outcomes, and
 * one whose signal fires while it is under way is late.
 */
export interface SlotClient {
  slots(pod: string, signal: AbortSignal): Promise<readonly SlotSnapshot[]>
  /** Any other JSON the engine gives about itself. @throws NoSuchPathError when the engine has no such path */
  about<T>(query: {
    readonly pod: string
    readonly path: string
    readonly schema: z.ZodType<T>
    readonly signal: AbortSignal
  }): Promise<T>
  /** Writes what the slot holds to `file` in the engine's slot folder. */
  save(slot: SlotAddress, file: string, signal?: AbortSignal): Promise<ActionOutcome<SavedSlot>>
  /** Replaces what the slot holds by the content of `file`. */
  restore(slot: SlotAddress, file: string, signal?: AbortSignal): Promise<ActionOutcome<TouchedSlot>>
  erase(slot: SlotAddress, signal?: AbortSignal): Promise<ActionOutcome<TouchedSlot>>
  /** Runs a prompt in the slot, for one token of response. Answers with how many tokens of the prompt the slot or the engine held. */
  cachedTokens(
    slot: SlotAddress,
    request: { readonly model: string; readonly prompt: string },
    signal: AbortSignal,
  ): Promise<number>
  close(): Promise<void>
}

export type TouchedSlot = z.output<typeof eraseAnswer>
export type SavedSlot = z.output<typeof saveAnswer>

export interface SlotClientOptions {
  /** How long a call may keep its caller waiting. */
  readonly callTimeoutMs: number
  /** How long a late action stays open to learn how it ended. */
  readonly lateTimeoutMs: number
  /** Calls at a time to one engine; questions and actions count apart. */
  readonly callsPerPod: number
  /** Default: plain HTTP without a credential. */
  readonly access?: EngineAccess | undefined
}

export const createSlotClient = (options: SlotClientOptions): SlotClient => {
  // A late action holds its connection; questions must not queue behind it.
  const queries = createEngineHttp(options)
  const actions = createEngineHttp(options)
  const never = new AbortController().signal

  const ask = async <T>(call: Omit<EngineCall, 'signal'>, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> => {
    const deadline = startDeadline(signal, options.callTimeoutMs)
    try {
      const end = toEnd(await queries.call({ ...call, signal: deadline.signal }), schema)
      if (end.kind !== 'done') throw end.kind === 'refused' && end.status === 404 ? new NoSuchPathError() : end.cause
      return end.value
    } finally {
      deadline.end()
    }
  }

  const act = async <T>(
    { pod, slot }: SlotAddress,
    action: { readonly name: string; readonly body: unknown; readonly schema: z.ZodType<T> },
    signal: AbortSignal = never,
  ): Promise<ActionOutcome<T>> => {
    if (signal.aborted) return { kind: 'unsent', cause: signal.reason }
    const late = startDeadline(never, options.lateTimeoutMs)
    const path = `/slots/${slot}?action=${action.name}`
    const end = actions
      .call({ method: 'POST', pod, path, body: action.body, signal: late.signal })
      .then((reply) => toEnd(reply, action.schema))
      .finally(() => late.end())
    const deadline = startDeadline(signal, options.callTimeoutMs)
    try {
      return await untilAborted<ActionOutcome<T>, ActionOutcome<T>>(end, deadline.signal, () => ({ kind: 'late', end }))
    } finally {
      deadline.end()
    }
  }

  return {
    slots: (pod, signal) => ask({ method: 'GET', pod, path: '/slots' }, slotsAnswer, signal),
    about: ({ pod, path, schema, signal }) => ask({ method: 'GET', pod, path }, schema, signal),
    save: (slot, file, signal) => act(slot, { name: 'save', body: { filename: file }, schema: saveAnswer }, signal),
    restore: (slot, file, signal) =>
      act(slot, { name: 'restore', body: { filename: file }, schema: restoreAnswer }, signal),
    erase: (slot, signal) => act(slot, { name: 'erase', body: {}, schema: eraseAnswer }, signal),
    cachedTokens: ({ pod, slot }, request, signal) =>
      ask(
        {
          method: 'POST',
          pod,
          path: '/v1/completions',
          body: { ...request, id_slot: slot, cache_prompt: true, max_tokens: 1 },
        },
        completionAnswer,
        signal,
      ),
    close: async () => {
      await Promise.all([queries.close(), actions.close()])
    },
  }
}

const toEnd = <T>(reply: EngineReply, schema: z.ZodType<T>): ActionEnd<T> => {
  switch (reply.kind) {
    case 'unsent':
      return reply
    case 'broken':
      return { kind: 'unknown', cause: reply.cause }
    case 'answered':
      return reply.status === 200 ? parse(reply.text, schema) : refusal(reply)
  }
}

const parse = <T>(text: string, schema: z.ZodType<T>): ActionEnd<T> => {
  const answer = schema.safeParse(readJson(text))
  return answer.success ? { kind: 'done', value: answer.data } : { kind: 'unknown', cause: answer.error }
}

/** An engine's error text is its own, without anything of a prompt; it is cut short all the same. */
const refusal = (reply: { readonly status: number; readonly text: string }) => ({
  kind: 'refused' as const,
  status: reply.status,
  cause: new Error(`the engine answered ${reply.status}: ${reply.text.slice(0, 200)}`),
})
