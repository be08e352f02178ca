/** Events as vLLM writes them, before msgpack. */
export type WireEvent = Readonly<Record<string, unknown>>

export interface StoredParts {
  readonly hashes: readonly (number | bigint | Uint8Array)[]
  /** All blocks' tokens, one after the other. */
  readonly tokens: readonly number[]
  readonly parent?: number | bigint | Uint8Array | null
  /** Of a root only. */
  readonly salt?: string | undefined
  readonly turnId?: string | undefined
  /** Fields to replace or add. */
  readonly fields?: WireEvent
}

export const storedEvent = ({ hashes, tokens, parent = null, salt, turnId, fields = {} }: StoredParts): WireEvent => ({
  type: 'BlockStored',
  block_hashes: hashes,
  parent_block_hash: parent,
  token_ids: tokens,
  block_size: tokens.length / hashes.length,
  lora_id: null,
  medium: 'GPU',
  lora_name: null,
  extra_keys: hashes.map((_, at) => (at === 0 && parent === null && salt !== undefined ? [salt] : null)),
  group_idx: 0,
  kv_cache_spec_kind: 'full_attention',
  ...(turnId === undefined ? {} : { session_id: turnId }),
  ...fields,
})

export const removedEvent = (hashes: readonly (number | bigint | Uint8Array)[], fields: WireEvent = {}): WireEvent => ({
  type: 'BlockRemoved',
  block_hashes: hashes,
  medium: 'GPU',
  group_idx: 0,
  ...fields,
})

export const clearedEvent: WireEvent = { type: 'AllBlocksCleared' }

/** `count` consecutive token ids. */
export const tokensFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => first + at)
