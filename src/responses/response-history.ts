import type { TenantKey } from '../sessions/session-record.ts'

/** An item of a conversation: a message, a function call, its output, reasoning, … */
export interface HistoryItem {
  /**
   * The item's own `id`, or, for one that came without, an id that the gateway gave it (`msg_…`, `fc_…`). `json` has no
   * id that its sender did not write.
   */
  readonly id: string
  /** The item as its sender wrote it: JSON text of one object, ready to be put into `input`. */
  readonly json: string
}

/** All that went before a turn. */
export interface Chain {
  /**
   * Names the chain and all forks of it: it is random, the same from the first turn to the last, and known to this
   * deployment alone. The chain's implicit session is the one of this name.
   */
  readonly root: string
  /** Oldest first: each turn's input items, then its output items. Without `instructions`. */
  readonly items: readonly HistoryItem[]
  /** Sum of the UTF-8 bytes of the items' JSON texts. */
  readonly bytes: number
}

/** What a turn continues. An id is what the client sent, of any form: one that cannot exist is unknown. */
export type Continued =
  | { readonly kind: 'response'; readonly id: string }
  /**
   * A conversation takes one turn at a time: the turn that opens it holds it under `turnId` until `append` or
   * `release`, or until `lockMs` have passed.
   */
  | { readonly kind: 'conversation'; readonly id: string; readonly turnId: string; readonly lockMs: number }

export type OpenOutcome =
  | { readonly kind: 'found'; readonly chain: Chain }
  /** Never stored, deleted, expired, or another tenant's: these look alike. */
  | { readonly kind: 'unknown' }
  /** Another turn of the conversation is under way. */
  | { readonly kind: 'locked' }

/** A turn whose answer is complete. */
export interface FinishedTurn {
  readonly tenant: TenantKey
  /** What the turn continued; `first`: nothing, and the chain takes the `root` under which the turn began. */
  readonly after:
    | { readonly kind: 'first'; readonly root: string }
    | { readonly kind: 'response'; readonly id: string }
    | { readonly kind: 'conversation'; readonly id: string; readonly turnId: string }
  /** Model that the request asked for; undefined: none. */
  readonly model: string | undefined
  /** The engine's own id of the answer: the client's only handle. */
  readonly responseId: string
  /** The new items of the request's `input` (not the history's), each the JSON text of one object. */
  readonly inputItems: readonly string[]
  /**
   * The final response object as the client got it, JSON text. Its `output` are the output items; all else in it is
   * what `GET /v1/responses/{id}` answers.
   */
  readonly response: string
  /** From now, by the store's clock. A conversation's own time to live starts anew with it. Whole, from 1. */
  readonly ttlSeconds: number
}

export type AppendOutcome =
  | { readonly kind: 'stored' }
  /**
   * What the turn continued was deleted or has expired meanwhile, or the conversation's lock was lost: nothing is stored,
   * and the response's id is unknown.
   */
  | { readonly kind: 'gone' }
  /** A response of this id is stored already; it stays as it is. */
  | { readonly kind: 'exists' }
  /** Nothing is stored: the turn is beyond this limit. */
  | { readonly kind: 'limited'; readonly limit: 'item-bytes' | 'conversation-bytes' | 'tenant-bytes' }
  /** `response` or an item is not what its field says: the engine's answer cannot be kept. */
  | { readonly kind: 'unreadable' }

/** A response that was kept. */
export interface StoredResponse {
  /** The response object as `append` got it, JSON text. */
  readonly response: string
  /** All items that the answer was computed from, oldest first: the history and the turn's own input. */
  readonly inputItems: readonly HistoryItem[]
}

/**
 * Keeps what responses and conversations were made of. Content is compressed, and encrypted under a key that needs the
 * id that only the client holds; an item is stored once, however long its chain is and however often it forks. Time is
 * the store's. Another tenant's id behaves exactly as one that does not exist; while secrets are rotated, the caller
 * asks as the tenant, and where that finds nothing, as the tenant by the other secret, and appends as the one that
 * found it.
 * @throws StoreUnavailableError from every method when the store cannot be reached, is too slow, or refuses to write.
 */
export interface ResponseHistory {
  /** A root for a chain that begins. Cheap; nothing is stored. */
  newRoot(): string
  /** All that a turn continues. Two turns may continue one response: the second one's answer forks the chain. */
  open(turn: { readonly tenant: TenantKey; readonly continued: Continued }): Promise<OpenOutcome>
  /** Stores a turn in one step, wholly or not at all; a conversation's lock is released, however it ends. */
  append(turn: FinishedTurn): Promise<AppendOutcome>
  /** A turn of a conversation ends without an answer to keep. A lock that is not the turn's stays. */
  release(turn: { readonly tenant: TenantKey; readonly conversationId: string; readonly turnId: string }): Promise<void>
  /** A response by its id; undefined: unknown. */
  get(response: { readonly tenant: TenantKey; readonly id: string }): Promise<StoredResponse | undefined>
}
