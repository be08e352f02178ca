import type { TenantName } from '../sessions/session-directory.ts'
import type { TenantKey } from '../sessions/session-record.ts'

/**
 * Text of a turn: the new items, and what else the answer had. A node follows another one, so that nodes form a tree; a
 * chain is the path from the tree's root to one of them.
 */
export interface NodeText {
  /** Sealed, base64. */
  readonly items: string
  /** The answer without its items: sealed, base64; undefined: no answer, or its response was deleted. */
  readonly answer: string | undefined
}

/**
 * Leads from an id of a client to a node, and keeps the chain of that node alive: the handle of a response for as long as
 * it lives, that of a conversation for the node it has reached.
 */
export interface Handle {
  /** The nodes up to its own, as `chain-path.ts` writes them; empty: a conversation without items. */
  readonly path: string
  /** UTF-8 bytes of all items of the chain. */
  readonly chainBytes: number
  /** Base64. Only who knows the id opens it. */
  readonly sealed: string
}

/** What a handle does in the store: `name` is made from its id, and does not lead back to it. */
export interface HandleOf {
  readonly tenant: TenantKey
  readonly name: string
}

export type HoldOutcome =
  | { readonly kind: 'held'; readonly handle: Handle }
  | { readonly kind: 'locked' }
  | { readonly kind: 'unknown' }

export interface NewNode {
  readonly tenant: TenantKey
  /** Nodes from the root to the new one, which is the last. */
  readonly path: readonly string[]
  readonly text: NodeText
  /** Handle of the response that the node is; undefined: items that a client added to a conversation. */
  readonly response: (Handle & { readonly name: string }) | undefined
  /** The conversation that moves on to the node, and its lock is released; undefined: none does. */
  readonly conversation:
    | (Pick<Handle, 'path' | 'chainBytes'> & { readonly name: string; readonly turnId: string })
    | undefined
  readonly ttlSeconds: number
  /** Bytes of the tenant at most, with the new ones: of keys' texts, and a constant for each key. */
  readonly maxTenantBytes: number
}

/**
 * `taken`: there is a node of this name; `exists`: a response of this name. `gone`: the node before it, or the
 * conversation, is no more, or another turn holds that. Nothing is written then.
 */
export type AppendNodeOutcome = 'stored' | 'taken' | 'exists' | 'gone' | 'full'

/** `moved`: the handle's path is another one by now. `rootGone`: nothing of the tree that had this path is left. */
export type RemoveOutcome =
  | { readonly kind: 'removed'; readonly rootGone: boolean }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'moved' }

/**
 * Keeps handles and nodes. A handle ends at its deadline; a node is there as long as a handle leads to it or to a node
 * behind it, and its text goes with it. Every method but `forgetTenant` is atomic and takes one round trip; time is the
 * store's own.
 * @throws StoreUnavailableError from every method when the store cannot be reached, is too slow, or refuses to write.
 */
export interface HistoryStore {
  find(handle: HandleOf): Promise<Handle | undefined>
  /** Finds a conversation and locks it; a turn that holds it already locks it anew. */
  hold(turn: HandleOf & { readonly turnId: string; readonly lockMs: number }): Promise<HoldOutcome>
  /** Releases a lock that is this turn's. */
  release(turn: HandleOf & { readonly turnId: string }): Promise<void>
  /** Texts of nodes in order, `maxNodesPerRead` at most; undefined: there is no such node. */
  read(nodes: {
    readonly tenant: TenantKey
    readonly names: readonly string[]
  }): Promise<readonly (NodeText | undefined)[]>
  append(node: NewNode): Promise<AppendNodeOutcome>
  /** A conversation without items. `false`: the tenant has no room. */
  createConversation(
    conversation: HandleOf & {
      readonly sealed: string
      readonly ttlSeconds: number
      readonly maxTenantBytes: number
    },
  ): Promise<boolean>
  /** Replaces what is sealed in a handle. `false`: there is none. */
  reseal(handle: HandleOf & { readonly sealed: string }): Promise<boolean>
  /**
   * Replaces items of a node whose items are still `before`; the chain of the conversation has `lessBytes` less.
   * `false`: they are not, or the conversation is no more, or not held by the turn.
   */
  replaceItems(change: {
    readonly conversation: HandleOf & { readonly turnId: string }
    readonly node: string
    readonly before: string
    readonly items: string
    readonly lessBytes: number
  }): Promise<boolean>
  /** Removes a handle that has this path, the answer that was its own, and all nodes that no handle leads to any more. */
  remove(
    handle: HandleOf & { readonly kind: 'response' | 'conversation'; readonly path: string },
  ): Promise<RemoveOutcome>
  /** Removes all that a tenant has, in batches; what is written meanwhile may stay. */
  forgetTenant(tenant: TenantName): Promise<void>
}

export const maxNodesPerRead = 64

/** Nodes that may follow one node: each of its forks is looked at when it changes. More are `full`. */
export const maxForks = 1_000

/** Charged for a node, and for a handle, beside its text. */
export const bytesPerKey = 512
