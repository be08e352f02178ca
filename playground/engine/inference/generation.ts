// What a request asks of the engine once its prompt has become tokens, and what comes back.
import type { Sampling } from '../runtime/inference-runtime.ts'

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
  /** Hexadecimal SHA-256 of the salt that keeps prefixes apart, empty for none. */
  readonly saltHash: string
  /** Hexadecimal SHA-256 of the request's session id, null for none. */
  readonly sessionHash: string | null
  /** Ends the answer at the next token, or the waiting for a slot. */
  readonly signal: AbortSignal
}

/** Why an answer ended: the model or a stop string ended it, or it had reached `maxTokens`. */
export type FinishReason = 'stop' | 'length'

/** What happens while an answer is computed. An aborted one simply ends. */
export type GenerationEvent =
  | { readonly kind: 'started'; readonly slotId: number; readonly cachedTokens: number }
  /** One token was chosen; `text` is what became certain by it, often one character, sometimes nothing. */
  | { readonly kind: 'token'; readonly text: string }
  /** `text` is what had been held back. */
  | { readonly kind: 'finished'; readonly reason: FinishReason; readonly text: string }
