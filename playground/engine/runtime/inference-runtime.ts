// What the engine asks of a language model in this process. One adapter: llama-runtime.ts.
import type { ChatMessage } from '../prompt/chat-message.ts'

/** A loaded model with its sequences. */
export interface InferenceRuntime {
  /** One for each slot; index = slot id. */
  readonly sequences: readonly TokenSequence[]
  /** Most tokens that a sequence can hold. */
  readonly contextTokens: number
  readonly vocabularySize: number
  /** No token stands for more characters than this. */
  readonly longestTokenCharacters: number
  /** Whether the weights are the engine's own random ones. */
  readonly isNoise: boolean
  /**
   * 32 bytes that differ whenever KV computed here could not be used there: they cover the model's file, the build of
   * llama.cpp and the settings that shape the KV.
   */
  readonly fingerprint: Buffer
  /** Tokens of plain text; marks such as `<|im_end|>` in it become their special tokens. */
  tokenize(text: string): readonly number[]
  /** Tokens of a conversation in the model's chat form, ready for the assistant's next message. */
  tokenizeChat(messages: readonly ChatMessage[]): readonly number[]
  /** The bytes of text that a token stands for; none for a special token. */
  tokenBytes(token: number): Uint8Array
  /** Frees the model. No other call may be under way. */
  dispose(): Promise<void>
}

/** The tokens that a slot's KV holds. Its methods may run at the same time on different sequences, never on one. */
export interface TokenSequence {
  /** The tokens held. */
  tokens(): readonly number[]
  tokenCount(): number
  /**
   * Drops everything behind the first `count` tokens. Returns how many are left: fewer, where the kind of model cannot
   * go back so far.
   */
  truncate(count: number): Promise<number>
  /** Appends a piece of a prompt. */
  append(tokens: readonly number[]): Promise<void>
  /**
   * Appends `token` and yields the tokens that follow, each appended as the next one is asked for, until the model ends
   * its answer.
   */
  generate(token: number, sampling: Sampling): AsyncGenerator<number, void, undefined>
  /** Drops everything, whatever state the KV is in. */
  clear(): Promise<void>
  /** Writes tokens and KV to a new file. */
  save(path: string): Promise<void>
  /** Replaces tokens and KV by those of a file that `save` wrote. On an error the sequence is empty. */
  load(path: string): Promise<void>
}

/** How the next token is chosen. */
export interface Sampling {
  /** 0 takes the likeliest token. */
  readonly temperature: number
  readonly topP: number
  /** 0 means all. */
  readonly topK: number
  readonly minP: number
  /** Unsigned 32-bit. */
  readonly seed: number
}
