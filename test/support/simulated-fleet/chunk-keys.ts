import { createHash } from 'node:crypto'

/** How LMCache names a chunk. */
export interface ChunkKey {
  readonly chunk_hash_hex: string
  readonly model_name: string
  readonly kv_rank: number
  readonly object_group_id: number
  readonly cache_salt: string
}

export interface TokenAddress {
  readonly model_name: string
  readonly cache_salt: string
  readonly token_ids: readonly number[]
}

/** Names of a sequence's whole chunks. A hash depends on all tokens before its chunk; the salt stands beside it. */
export const chunkKeysOf = (address: TokenAddress, chunkTokens: number): readonly ChunkKey[] => {
  const { model_name, cache_salt, token_ids } = address
  const keys: ChunkKey[] = []
  let parent = ''
  for (let end = chunkTokens; end <= token_ids.length; end += chunkTokens) {
    parent = createHash('sha256')
      .update(`${parent}:${token_ids.slice(end - chunkTokens, end).join()}`)
      .digest('hex')
    keys.push({ chunk_hash_hex: parent, model_name, kv_rank: 16_777_472, object_group_id: 0, cache_salt })
  }
  return keys
}

/** One name as text, as it stands in a file name. */
export const keyText = (key: ChunkKey): string =>
  [key.model_name, key.kv_rank, key.object_group_id, key.chunk_hash_hex, key.cache_salt].join('@')
