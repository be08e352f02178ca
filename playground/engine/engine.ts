// The slots: completions and actions wait for one, and run in it.
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
  /** What an end after `maxTokens` counts as. */
  readonly reasonAtMax: FinishReason
  readonly sampling: Sampling
  /** Strings that end the answer. */
  readonly stops: readonly string[]
  /** The slot to use, or undefined for the best one. */
  readonly slotId: number | undefined
  /** Repeated in the slot's report, as llama-server does. */
  readonly keep: number
  /** False: nothing that a slot holds is reused. */
  readonly cachePrompt: boolean
  /** Ends the answer at the next token, or the waiting for a slot. */
  readonly signal: AbortSignal
}

/** What is known of an answer before its first token. */
export interface PromptCounts {
  readonly promptTokens: number
  /** Prompt tokens whose KV was there already. */
  readonly cachedTokens: number
}

/** A computed answer. */
export interface Answer extends PromptCounts {
  readonly text: string
  readonly finishReason: FinishReason
  readonly completionTokens: number
}

/** Receives the text that can be emitted after each token: often one character or word, sometimes nothing. */
export type OnText = (text: string, prompt: PromptCounts) => void

/** One sequence and the last completion that ran in it. */
export interface Slot {
  readonly sequence: TokenSequence
  readonly lastTask: SlotTask | undefined
}

interface SlotTask {
  /** Unique in this process. */
  readonly id: number
  readonly keep: number
}

/** Prompt tokens between two looks at the signal: half of the runtime's batch, so that those of other slots fit in. */
const pieceTokens = 256
/** Share of a prompt that a slot must hold for the request to go there; below it, its KV is worth more than that. */
const reuseThreshold = 0.5

export const createEngine = (llama: LlamaRuntime) => {
  const slots: Slot[] = llama.sequences.map((sequence) => ({ sequence, lastTask: undefined }))
  const scheduler = createSlotScheduler(slots.length)
  let nextTaskId = 0

  const slotOf = (slotId: number): Slot => {
    const slot = slots[slotId]
    if (slot === undefined) throw new RangeError(`there is no slot ${slotId}`)
    return slot
  }

  /** The idle slot that holds most of the prompt, if that reaches the threshold, else the one unused for longest. */
  const choose = (tokens: readonly number[], idleIds: readonly number[]): number => {
    const idle = idleIds.map((id) => ({ id, ...slotOf(id), held: commonPrefix(slotOf(id).sequence.tokens(), tokens) }))
    const [best] = [...idle].sort((a, b) => b.held - a.held)
    if (best !== undefined && best.held > 0 && best.held >= reuseThreshold * tokens.length) return best.id
    return [...idle].sort((a, b) => (a.lastTask?.id ?? -1) - (b.lastTask?.id ?? -1))[0]?.id ?? 0
  }

  return {
    llama,
    /** One for each slot; index = slot id. */
    slots: slots as readonly Slot[],
    isBusy: (slotId: number): boolean => scheduler.isBusy(slotId),
    /** Tasks that wait for a slot. */
    waiting: (): number => scheduler.waiting(),

    /**
     * Computes an answer. @throws the signal's reason; what was computed until then stays in the slot
     */
    generate: (request: GenerationRequest, onText: OnText): Promise<Answer> => {
      const { slotId: wanted, signal, tokens, keep } = request
      return scheduler.run({ slotId: wanted, signal, choose: (idleIds) => choose(tokens, idleIds) }, async (slotId) => {
        const { sequence } = slotOf(slotId)
        slots[slotId] = { sequence, lastTask: { id: nextTaskId, keep } }
        nextTaskId += 1
        try {
          return await computeAnswer(request, { sequence, llama, onText })
        } catch (error) {
          if (error !== signal.reason) await sequence.clear()
          throw error
        }
      })
    },

    /** Runs an action on a slot once it is free. @throws the signal's reason while waiting; what `action` throws */
    runAction: <Result>(
      { id, signal }: { readonly id: number; readonly signal: AbortSignal },
      action: (sequence: TokenSequence) => Promise<Result>,
    ): Promise<Result> => scheduler.run({ slotId: id, signal, choose: () => id }, () => action(slotOf(id).sequence)),
  }
}

export type Engine = ReturnType<typeof createEngine>

/** Cuts the sequence down to the prefix that it has of the prompt, without the last token. Resolves to its length. */
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
const computeAnswer = async (
  { tokens, signal, maxTokens, reasonAtMax, sampling, stops, cachePrompt }: GenerationRequest,
  slot: {
    readonly sequence: TokenSequence
    readonly llama: Pick<LlamaRuntime, 'tokenBytes'>
    readonly onText: OnText
  },
): Promise<Answer> => {
  const { sequence } = slot
  if (!cachePrompt) await sequence.clear()
  const cachedTokens = await reusePrefix(sequence, tokens)
  // The last token is computed by itself: cold, reused or restored, the same numbers then choose the first token of the
  // answer.
  const lastIndex = tokens.length - 1
  for (let start = cachedTokens; start < lastIndex; start += pieceTokens) {
    signal.throwIfAborted()
    await sequence.append(tokens.slice(start, Math.min(start + pieceTokens, lastIndex)))
  }
  signal.throwIfAborted()
  const prompt: PromptCounts = { promptTokens: tokens.length, cachedTokens }
  const text = createAnswerText(stops, (ready) => slot.onText(ready, prompt))
  let completionTokens = 0
  const answer = (finishReason: FinishReason): Answer => {
    return { ...prompt, text: text.text(), finishReason, completionTokens }
  }
  for await (const token of sequence.generate(tokens[lastIndex] ?? 0, sampling)) {
    signal.throwIfAborted()
    completionTokens += 1
    if (text.push(slot.llama.tokenBytes(token))) return answer('stop')
    if (completionTokens >= maxTokens) break
  }
  const isStopped = text.end()
  return answer(completionTokens >= maxTokens && !isStopped ? reasonAtMax : 'stop')
}
