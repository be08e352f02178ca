import type { HistoryItem } from '../../../src/responses/response-history.ts'

/** A response or a conversation, as the model has it: what its chain is made of, and until when. */
interface Kept {
  /** Those that were removed from a conversation, too. */
  readonly texts: readonly string[]
  readonly endsMs: number
}

/** The turn that took a conversation last, and until when it keeps all others out. */
interface Lock {
  readonly turnId: string
  readonly untilMs: number
}

interface AddedResponse {
  readonly after: string | undefined
  readonly added: readonly string[]
  readonly ttlSeconds: number
}

/**
 * What a client must see, without trees, nodes or keys: each id has a copy of all of its texts.
 */
export class HistoryModel {
  readonly #responses = new Map<string, Kept>()
  readonly #conversations = new Map<string, Kept & { readonly lock: Lock | undefined }>()
  readonly #removed = new Set<string>()
  #nowMs = 0

  advance(milliseconds: number): void {
    this.#nowMs += milliseconds
    for (const kept of [this.#responses, this.#conversations])
      for (const [id, { endsMs }] of kept) if (endsMs <= this.#nowMs) kept.delete(id)
  }

  texts(id: string): readonly string[] | undefined {
    return this.#left(this.#responses.get(id))
  }

  conversation(id: string): readonly string[] | undefined {
    return this.#left(this.#conversations.get(id))
  }

  isLocked(id: string): boolean {
    return (this.#conversations.get(id)?.lock?.untilMs ?? 0) > this.#nowMs
  }

  /** No other turn or change has come between, also when its time is over. */
  isHeldBy(id: string, turnId: string): boolean {
    return this.#conversations.get(id)?.lock?.turnId === turnId
  }

  addConversation(id: string, ttlSeconds: number): void {
    this.#conversations.set(id, { texts: [], endsMs: this.#endsMs(ttlSeconds), lock: undefined })
  }

  hold(id: string, turnId: string, lockMs: number): void {
    this.#lock(id, { turnId, untilMs: this.#nowMs + lockMs })
  }

  addItems(id: string, added: readonly string[], ttlSeconds: number): void {
    const texts = [...(this.#conversations.get(id)?.texts ?? []), ...added]
    this.#conversations.set(id, { texts, endsMs: this.#endsMs(ttlSeconds), lock: undefined })
  }

  /** Of a conversation: it is gone from the responses of it, too. */
  removeItem(id: string, text: string): void {
    this.#removed.add(text)
    this.#lock(id, undefined)
  }

  /** `after`: the response that it continues, or the conversation that it is the last turn of. */
  addResponse(id: string, { after, added, ttlSeconds }: AddedResponse): void {
    const before = after === undefined ? undefined : (this.#responses.get(after) ?? this.#conversations.get(after))
    this.#responses.set(id, { texts: [...(before?.texts ?? []), ...added], endsMs: this.#endsMs(ttlSeconds) })
  }

  remove(id: string): boolean {
    return this.#responses.delete(id) || this.#conversations.delete(id)
  }

  conversationIds(): readonly string[] {
    return [...this.#conversations.keys()]
  }

  /** All texts that something leads to, removed ones too. */
  alive(): ReadonlySet<string> {
    return new Set([...this.#responses.values(), ...this.#conversations.values()].flatMap(({ texts }) => texts))
  }

  #left(kept: Kept | undefined): readonly string[] | undefined {
    return kept?.texts.filter((text) => !this.#removed.has(text))
  }

  #lock(id: string, lock: Lock | undefined): void {
    const kept = this.#conversations.get(id)
    if (kept !== undefined) this.#conversations.set(id, { ...kept, lock })
  }

  #endsMs(ttlSeconds: number): number {
    return this.#nowMs + ttlSeconds * 1000
  }
}

export const textOf = ({ json }: HistoryItem): string => JSON.parse(json).content
