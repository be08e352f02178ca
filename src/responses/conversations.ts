import type { TenantName } from '../sessions/session-directory.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { AppendOutcome, HistoryItem } from './response-history.ts'

/** A conversation as clients see it, without its items. */
export interface Conversation {
  readonly id: string
  /** Seconds since 1970. */
  readonly createdAt: number
  readonly metadata: Readonly<Record<string, string>>
}

/** An object of a tenant. Another tenant's behaves exactly as one that does not exist. */
export interface Owned {
  readonly tenant: TenantKey
  readonly id: string
}

export type LimitReached = Extract<AppendOutcome, { kind: 'limited' }>

export type DeletedResponse =
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'deleted'
      readonly root: string
      /** Nothing is left of the chain with this root, and of its forks. */
      readonly ended: boolean
      /** That the chain's turns asked for, each once, in the order of their first turns. */
      readonly models: readonly string[]
    }

/** Of what is left of a chain beside its text: what these models computed for the chain with this root. */
export interface ForgottenChain {
  readonly root: string
  readonly models: readonly string[]
}

/** What clients do with responses and conversations without a turn. @throws StoreUnavailableError from every method */
export interface Conversations {
  /**
   * A conversation with its first items, each the JSON text of an object. Each turn and each change of its items start
   * its time to live anew.
   */
  create(conversation: {
    readonly tenant: TenantKey
    readonly items: readonly string[]
    readonly metadata: Readonly<Record<string, string>>
    readonly ttlSeconds: number
  }): Promise<{ readonly kind: 'created'; readonly conversation: Conversation } | LimitReached>
  get(conversation: Owned): Promise<Conversation | undefined>
  /** Replaces its metadata. */
  setMetadata(
    conversation: Owned & { readonly metadata: Readonly<Record<string, string>> },
  ): Promise<Conversation | undefined>
  /** What responses were made of stays with them, as for a deleted response. */
  remove(conversation: Owned): Promise<DeletedResponse>
  /** `locked`: a turn of it is under way. */
  addItems(
    additions: Owned & { readonly items: readonly string[]; readonly ttlSeconds: number },
  ): Promise<
    | { readonly kind: 'added'; readonly items: readonly HistoryItem[] }
    | { readonly kind: 'unknown' }
    | { readonly kind: 'locked' }
    | LimitReached
  >
  /** Oldest first; undefined: unknown. */
  items(conversation: Owned): Promise<readonly HistoryItem[] | undefined>
  /** Removes an item from the conversation, and from every response whose chain has it. */
  removeItem(
    item: Owned & { readonly itemId: string },
  ): Promise<
    | { readonly kind: 'removed'; readonly conversation: Conversation }
    | { readonly kind: 'unknown' }
    | { readonly kind: 'unknown-item' }
    | { readonly kind: 'locked' }
  >
}

/** Responses by their ids. @throws StoreUnavailableError from every method */
export interface StoredResponses {
  /**
   * The id becomes unknown, and the answer's object goes. Its items, and those before it, stay as long as a response or
   * conversation that continues it does, and go with the last one.
   */
  remove(response: Owned): Promise<DeletedResponse>
  /** Removes all that a tenant has; what is written meanwhile may stay. */
  forgetTenant(tenant: TenantName): Promise<void>
}
