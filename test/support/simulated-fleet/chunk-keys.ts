import { createHash } from 'node:crypto'
import * as z from 'zod'

/** How LMCache names a chunk. */
export const keySchema = z.object({
  chunk_hash_hex: z.string(),
  model_name: z.string(),
  kv_rank: z.number(),
  object_group_id: z.number(),
  cache_salt: z.string(),
})
export type ChunkKey = Readonly<z.infer<typeof keySchema>>

interface TokenAddress {
  readonly model_name: string
  readonly cache_salt: string
  readonly token_ids: readonly number[]
}

/** A hash for each whole run of so many tokens. It depends on `start` and on all tokens before the end of its run. */
export const hashChain = (start: string, tokens: readonly number[], size: number): readonly string[] => {
  const hashes: string[] = []
  for (let end = size; end <= tokens.length; end += size) {
    const text = `${hashes.at(-1) ?? start}:${tokens.slice(end - size, end).join()}`
    hashes.push(createHash('sha256').update(text).digest('hex'))
  }
  return hashes
}

/** Names of a sequence's whole chunks. The salt stands beside the hash. */
export const chunkKeysOf = (address: TokenAddress, chunkTokens: number): readonly ChunkKey[] => {
  const { model_name, cache_salt, token_ids } = address
  const rest = { model_name, kv_rank: 16_777_472, object_group_id: 0, cache_salt }
  return hashChain('', token_ids, chunkTokens).map((chunk_hash_hex) => ({ chunk_hash_hex, ...rest }))
}

/** One name as text, as it stands in a file name. */
export const keyText = (key: ChunkKey): string =>
  [key.model_name, key.kv_rank, key.object_group_id, key.chunk_hash_hex, key.cache_salt].join('@')
