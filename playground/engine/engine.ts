// The slots: tasks get one, run in it, and give it back.
import { stat } from 'node:fs/promises'
import { createAnswerText, type FinishReason } from './answer-text.ts'
import type { LlamaRuntime } from './llama-runtime.ts'
import type { Sampling, TokenSequence } from './llama-sequence.ts'
import { createSlotScheduler } from './slot-scheduler.ts'

/** One answer to compute. */
export interface GenerationRequest {
  /** The prompt, at least one token, and short enough that `maxTokens` more find room. */
  readonly tokens: readonly number[]
  /** Most tokens to answer with, at least 1. */
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Strings that end the answer. */
  readonly stops: readonly string[]
  /** The slot to use, or undefined for the best one. */
  readonly slotId: number | undefined
  /** Repeated in the slot's report, as llama-server does. */
  readonly keep: number
  /** Ends the answer at the next token, or the waiting for a slot. */
  readonly signal: AbortSignal
}

/** What happens while an answer is computed. An aborted one simply ends. */
export type GenerationEvent =
  | { readonly kind: 'started'; readonly slotId: number; readonly cachedTokens: number }
  /** One token was chosen; `text` is the text that can be emitted after it, often one character, sometimes nothing. */
  | { readonly kind: 'token'; readonly text: string }
  /** `text` is what was held back. */
  | { readonly kind: 'finished'; readonly reason: FinishReason; readonly text: string }

/** A slot as it is reported. */
export interface SlotReport {
  readonly id: number
  readonly isProcessing: boolean
  readonly tokenCount: number
  /** The last completion that ran in it. */
  readonly lastTask: SlotTask | undefined
}

interface SlotTask {
  /** Unique in this process. */
  readonly id: number
  readonly keep: number
}

/** The outcome of an action on a slot. */
export type ActionOutcome =
  | { readonly kind: 'done'; readonly tokens: number; readonly bytes: number; readonly elapsedMs: number }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'aborted' }

export type SlotActionName = 'save' | 'restore' | 'erase'

/** What an action on a slot needs to know. */
export interface SlotAction {
  readonly slotId: number
  /** The file to save into or to restore from. */
  readonly path: string
  /** Drops the action while it waits for the slot. Once begun, it is finished. */
  readonly signal: AbortSignal
}

interface Slot {
  readonly sequence: TokenSequence
  lastTask: SlotTask | undefined
}

export interface Engine {
  readonly llama: LlamaRuntime
  /** Computes an answer. The slot is given back when the generator ends or is left. */
  generate(request: GenerationRequest): AsyncGenerator<GenerationEvent, void, undefined>
  runAction(name: SlotActionName, action: SlotAction): Promise<ActionOutcome>
  slots(): readonly SlotReport[]
  /** Tasks that wait for a slot. */
  waiting(): number
  /** Tokens since the start. */
  counts(): TokenCounts
}

export interface TokenCounts {
  readonly prompt: number
  /** Prompt tokens whose KV was there already. */
  readonly cached: number
  readonly predicted: number
}

/**
 * Prompt tokens computed between two looks at the signal: half of the runtime's batch, so that other slots' tokens fit
 * beside them.
 */
const pieceTokens = 256
/** Share of a prompt that a slot must hold for the request to go there; below it, its KV is worth more than the gain. */
const reuseThreshold = 0.5

export const createEngine = (llama: LlamaRuntime): Engine => {
  const slots: readonly Slot[] = llama.sequences.map((sequence) => ({ sequence, lastTask: undefined }))
  const scheduler = createSlotScheduler(slots.length)
  let nextTaskId = 0
  let counts: TokenCounts = { prompt: 0, cached: 0, predicted: 0 }

  const slotOf = (slotId: number): Slot => {
    const slot = slots[slotId]
    if (slot === undefined) throw new RangeError(`there is no slot ${slotId}`)
    return slot
  }

  /** The idle slot that holds the most of the prompt, if that reaches the threshold, else the one unused for longest. */
  const choose = (tokens: readonly number[], idleIds: readonly number[]): number => {
    const idle = idleIds.map((id) => ({ id, ...slotOf(id), held: commonPrefix(slotOf(id).sequence.tokens(), tokens) }))
    const [best] = [...idle].sort((a, b) => b.held - a.held)
    if (best !== undefined && best.held > 0 && best.held >= reuseThreshold * tokens.length) return best.id
    return [...idle].sort((a, b) => (a.lastTask?.id ?? -1) - (b.lastTask?.id ?? -1))[0]?.id ?? 0
  }

  return {
    llama,
    waiting: () => scheduler.waiting(),
    counts: () => counts,
    slots: () =>
      slots.map(({ sequence, lastTask }, id) => ({
        id,
        isProcessing: scheduler.isBusy(id),
        tokenCount: sequence.tokenCount(),
        lastTask,
      })),

    async *generate(request) {
      const { slotId, signal, tokens, keep } = request
      const lease = await scheduler.acquire({ slotId, signal, choose: (idleIds) => choose(tokens, idleIds) })
      if (lease.kind === 'aborted') return
      const slot = slotOf(lease.slotId)
      try {
        slot.lastTask = { id: nextTaskId, keep }
        nextTaskId += 1
        const cachedTokens = await reusePrefix(slot.sequence, tokens)
        counts = { ...counts, prompt: counts.prompt + tokens.length, cached: counts.cached + cachedTokens }
        yield { kind: 'started', slotId: lease.slotId, cachedTokens }
        for await (const event of computeAnswer(slot.sequence, { request, cachedTokens, llama })) {
          if (event.kind === 'token') counts = { ...counts, predicted: counts.predicted + 1 }
          yield event
        }
      } catch (error) {
        await slot.sequence.clear()
        throw error
      } finally {
        lease.release()
      }
    },

    async runAction(name, { slotId, path, signal }) {
      const lease = await scheduler.acquire({ slotId, signal, choose: () => slotId })
      if (lease.kind === 'aborted') return lease
      const startedMs = performance.now()
      try {
        const result = await act(slotOf(slotId).sequence, name, path)
        return { kind: 'done', ...result, elapsedMs: performance.now() - startedMs }
      } catch (error) {
        if (name !== 'restore') throw error
        const reason = error instanceof Error ? error.message : String(error)
        return { kind: 'refused', reason: `Unable to restore slot: ${reason}` }
      } finally {
        lease.release()
      }
    },
  }
}

/** Resolves to the tokens that were saved, restored or erased, and the size of the file. */
const act = async (
  sequence: TokenSequence,
  name: SlotActionName,
  path: string,
): Promise<{ readonly tokens: number; readonly bytes: number }> => {
  const tokens = sequence.tokenCount()
  switch (name) {
    case 'save':
      return { tokens, bytes: await sequence.save(path) }
    case 'restore':
      await sequence.load(path)
      return { tokens: sequence.tokenCount(), bytes: (await stat(path)).size }
    case 'erase':
      await sequence.clear()
      return { tokens, bytes: 0 }
  }
}

/** Makes the sequence hold the longest prefix of the prompt that it has, except for the last token. Resolves to its length. */
const reusePrefix = async (sequence: TokenSequence, tokens: readonly number[]): Promise<number> => {
  const keep = Math.min(commonPrefix(sequence.tokens(), tokens), tokens.length - 1)
  return keep === sequence.tokenCount() ? keep : sequence.truncate(keep)
}

const commonPrefix = (a: readonly number[], b: readonly number[]): number => {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a[length] === b[length]) length += 1
  return length
}

/** Computes the rest of the prompt, and the answer. */
async function* computeAnswer(
  sequence: TokenSequence,
  work: {
    readonly request: GenerationRequest
    readonly cachedTokens: number
    readonly llama: Pick<LlamaRuntime, 'tokenBytes'>
  },
): AsyncGenerator<GenerationEvent, void, undefined> {
  const { tokens, signal, maxTokens, sampling, stops } = work.request
  // The last token is computed by itself: cold, reused or restored, the same numbers then choose the first token of the
  // answer.
  const lastIndex = tokens.length - 1
  for (let start = work.cachedTokens; start < lastIndex; start += pieceTokens) {
    if (signal.aborted) return
    await sequence.append(tokens.slice(start, Math.min(start + pieceTokens, lastIndex)))
  }
  if (signal.aborted) return
  const text = createAnswerText(stops)
  let count = 0
  for await (const token of sequence.generate(tokens[lastIndex] ?? 0, sampling)) {
    if (signal.aborted) return
    count += 1
    const piece = text.push(work.llama.tokenBytes(token))
    yield { kind: 'token', text: piece.text }
    if (piece.stopped) {
      yield { kind: 'finished', reason: 'stop', text: '' }
      return
    }
    if (count >= maxTokens) break
  }
  const rest = text.end()
  yield { kind: 'finished', reason: count >= maxTokens && !rest.stopped ? 'length' : 'stop', text: rest.text }
}
