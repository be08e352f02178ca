/** What one engine told of its own cache, reduced to what can be matched by tokens. Events of other tiers and cache groups are left out. */
export type KvBlockEvent =
  | KvBlocksStored
  | { readonly kind: 'removed'; readonly hashes: readonly string[] }
  | { readonly kind: 'cleared' }

/** Blocks that lie one after the other in a chain. */
export interface KvBlocksStored {
  readonly kind: 'stored'
  readonly after: ChainPosition
  /** At least one. */
  readonly blocks: readonly KvBlock[]
  /** The request that filled or reused them; undefined where it named no session. */
  readonly turnId: string | undefined
}

/** Where a chain of blocks goes on: behind a known block, or at its root, which salt and adapter tell apart from other roots. */
export type ChainPosition =
  | { readonly kind: 'block'; readonly hash: string }
  | { readonly kind: 'root'; readonly salt: string; readonly lora: string | undefined }

export interface KvBlock {
  /** The engine's own name for the block. It depends on everything before the block, and differs between engines. */
  readonly hash: string
  readonly tokens: Uint32Array
}
