import type { HistoryItem } from '../../../src/responses/response-history.ts'

/** A response or a conversation, as the model has it: what its chain is made of, and until when. */
interface Kept {
  readonly texts: readonly string[]
  readonly endsMs: number
}

/**
 * What a client must see, without trees, nodes or keys: each id has a copy of all of its texts.
 */
export class HistoryModel {
  readonly #responses = new Map<string, Kept>()
  readonly #conversations = new Map<string, Kept & { readonly heldBy: string | undefined }>()
  #nowMs = 0

  advance(milliseconds: number): void {
    this.#nowMs += milliseconds
    for (const kept of [this.#responses, this.#conversations])
      for (const [id, { endsMs }] of kept) if (endsMs <= this.#nowMs) kept.delete(id)
  }

  texts(id: string): readonly string[] | undefined {
    return this.#responses.get(id)?.texts
  }

  conversation(id: string): readonly string[] | undefined {
    return this.#conversations.get(id)?.texts
  }

  holder(id: string): string | undefined {
    return this.#conversations.get(id)?.heldBy
  }

  addConversation(id: string, ttlSeconds: number): void {
    this.#conversations.set(id, { texts: [], endsMs: this.#endsMs(ttlSeconds), heldBy: undefined })
  }

  hold(id: string, turnId: string | undefined): void {
    const kept = this.#conversations.get(id)
    if (kept !== undefined) this.#conversations.set(id, { ...kept, heldBy: turnId })
  }

  addItems(id: string, texts: readonly string[], ttlSeconds: number): void {
    const before = this.conversation(id) ?? []
    const endsMs = this.#endsMs(ttlSeconds)
    this.#conversations.set(id, { texts: [...before, ...texts], endsMs, heldBy: undefined })
  }

  addResponse(id: string, texts: readonly string[], ttlSeconds: number): void {
    this.#responses.set(id, { texts, endsMs: this.#endsMs(ttlSeconds) })
  }

  remove(id: string): boolean {
    return this.#responses.delete(id) || this.#conversations.delete(id)
  }

  conversationIds(): readonly string[] {
    return [...this.#conversations.keys()]
  }

  /** All texts that something leads to. */
  alive(): ReadonlySet<string> {
    return new Set([...this.#responses.values(), ...this.#conversations.values()].flatMap(({ texts }) => texts))
  }

  #endsMs(ttlSeconds: number): number {
    return this.#nowMs + ttlSeconds * 1000
  }
}

export const textOf = ({ json }: HistoryItem): string => JSON.parse(json).content
