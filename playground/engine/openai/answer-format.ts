// What the three interfaces have in common when they write an answer. One file per interface implements `AnswerFormat`.
import type { FinishReason } from '../inference/generation.ts'

/** Facts about an answer that are known before its first token. */
export interface AnswerHead {
  /** Unique part of the ids in the answer. */
  readonly key: string
  readonly model: string
  readonly createdSeconds: number
  readonly promptTokens: number
  /** Prompt tokens whose KV was there already. */
  readonly cachedTokens: number
}

/** Facts about an answer that are known at its end. */
export interface AnswerEnd {
  /** The whole text. */
  readonly text: string
  readonly finishReason: FinishReason
  readonly completionTokens: number
}

/** One server-sent event. */
export interface ServerEvent {
  /** Only /v1/responses names its events. */
  readonly name?: string
  /** An object, or the closing `[DONE]`. */
  readonly data: Readonly<Record<string, unknown>> | '[DONE]'
}

/** Writes one answer in the form of its interface. */
export interface AnswerFormat {
  /** The whole answer, for a request that is not streamed. */
  whole(end: AnswerEnd): Readonly<Record<string, unknown>>
  /** Events in front of the first text. */
  streamStart(): readonly ServerEvent[]
  streamText(text: string): readonly ServerEvent[]
  streamEnd(end: AnswerEnd): readonly ServerEvent[]
  /** Events that tell of a fault in the middle of a stream. */
  streamFault(message: string): readonly ServerEvent[]
}

/** How many tokens went in and came out, as completions and chat report it. */
export function tokenUsage({ promptTokens, cachedTokens }: AnswerHead, { completionTokens }: AnswerEnd) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  }
}
