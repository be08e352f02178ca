import { decode } from '@msgpack/msgpack'
import { readTokenIds } from '../token-ids.ts'
import type { ChainPosition, KvBlock, KvBlockEvent } from './kv-block-event.ts'

const maxBatchBytes = 32 * 1024 * 1024
const maxTokens = 4 * 1024 * 1024
/** vLLM tells the tier of its own cache as `GPU`, also where it runs on a CPU; events without a tier are older and mean the same. */
const ownMedium = 'GPU'

/**
 * Reads one batch of vLLM's KV events: msgpack of `[timestamp, events, rank?]`, each event a map with a `type`. Undefined: it is not one.
 * Unknown types and fields are passed over. So is what cannot be matched by its tokens alone: blocks of other tiers and cache groups, blocks
 * with gaps in between (sliding windows), and every block from the first one on that depends on more than tokens (images, embeddings).
 */
export const decodeEvents = (batch: Uint8Array): readonly KvBlockEvent[] | undefined => {
  if (batch.byteLength > maxBatchBytes) return undefined
  const content = parse(batch)
  if (!Array.isArray(content) || !Array.isArray(content[1])) return undefined
  const events: KvBlockEvent[] = []
  for (const item of content[1]) {
    const event = readEvent(item)
    if (event === 'malformed') return undefined
    if (event !== 'irrelevant') events.push(event)
  }
  return events
}

type Fields = Readonly<Record<string, unknown>>

const parse = (bytes: Uint8Array): unknown => {
  try {
    return decode(bytes, { useBigInt64: true, maxArrayLength: maxTokens, maxMapLength: 1_000, maxStrLength: 1_048_576 })
  } catch {
    return undefined
  }
}

const readEvent = (item: unknown): KvBlockEvent | 'irrelevant' | 'malformed' => {
  if (!isFields(item)) return 'malformed'
  switch (item['type']) {
    case 'BlockStored':
      return readStored(item)
    case 'BlockRemoved':
      return readRemoved(item)
    case 'AllBlocksCleared':
      return { kind: 'cleared' }
    default:
      return typeof item['type'] === 'string' ? 'irrelevant' : 'malformed'
  }
}

const readRemoved = (fields: Fields): KvBlockEvent | 'irrelevant' | 'malformed' => {
  const hashes = readHashes(fields['block_hashes'])
  if (hashes === undefined) return 'malformed'
  return ofOwnCache(fields) ? { kind: 'removed', hashes } : 'irrelevant'
}

const readStored = (fields: Fields): KvBlockEvent | 'irrelevant' | 'malformed' => {
  const hashes = readHashes(fields['block_hashes'])
  const tokens = readTokenIds(fields['token_ids'])
  const blockSize = fields['block_size']
  if (hashes === undefined || tokens === undefined || !isCount(blockSize) || blockSize === 0) return 'malformed'
  if (!ofOwnCache(fields) || hashes.length === 0 || tokens.length !== hashes.length * blockSize) return 'irrelevant'

  const lora = loraOf(fields)
  const extraKeys = readExtraKeys(fields['extra_keys'], hashes.length, lora)
  if (extraKeys === undefined) return 'irrelevant'
  const after = readPosition(fields['parent_block_hash'], extraKeys[0] ?? [], lora)
  if (after === 'malformed' || after === 'irrelevant') return after

  const blocks: KvBlock[] = []
  for (const [at, hash] of hashes.entries()) {
    const own = at === 0 && after.kind === 'root' ? [] : (extraKeys[at] ?? [])
    if (own.length > 0) break
    blocks.push({ hash, tokens: tokens.slice(at * blockSize, (at + 1) * blockSize) })
  }
  const session = fields['session_id']
  return blocks.length === 0
    ? 'irrelevant'
    : { kind: 'stored', after, blocks, turnId: typeof session === 'string' ? session : undefined }
}

/** A root's extra keys may hold the salt, and nothing else. */
const readPosition = (
  parent: unknown,
  extraKeys: readonly unknown[],
  lora: string | undefined,
): ChainPosition | 'irrelevant' | 'malformed' => {
  if (parent === null || parent === undefined) {
    const [salt = '', ...others] = extraKeys
    return typeof salt === 'string' && others.length === 0 ? { kind: 'root', salt, lora } : 'irrelevant'
  }
  const hash = readHash(parent)
  return hash === undefined ? 'malformed' : { kind: 'block', hash }
}

/** What each block's hash depends on besides its tokens and the adapter. Undefined: the engine does not tell, so its salt is not known either. */
const readExtraKeys = (
  value: unknown,
  blocks: number,
  lora: string | undefined,
): readonly (readonly unknown[])[] | undefined => {
  if (!Array.isArray(value) || value.length !== blocks) return undefined
  const perBlock: (readonly unknown[])[] = []
  for (const keys of value) {
    if (keys !== null && !Array.isArray(keys)) return undefined
    const all: readonly unknown[] = keys ?? []
    perBlock.push(lora !== undefined && all[0] === lora ? all.slice(1) : all)
  }
  return perBlock
}

const loraOf = (fields: Fields): string | undefined => {
  const name = fields['lora_name']
  if (typeof name === 'string') return name
  const id = fields['lora_id']
  if (id === null || id === undefined) return undefined
  return typeof id === 'number' ? `#${id}` : '#unknown'
}

const ofOwnCache = (fields: Fields): boolean => {
  const medium = fields['medium'] ?? ownMedium
  const group = fields['group_idx'] ?? 0
  const locality = fields['locality'] ?? 'LOCAL'
  return medium === ownMedium && group === 0 && locality === 'LOCAL'
}

const readHashes = (value: unknown): readonly string[] | undefined => {
  if (!Array.isArray(value)) return undefined
  const hashes: string[] = []
  for (const item of value) {
    const hash = readHash(item)
    if (hash === undefined) return undefined
    hashes.push(hash)
  }
  return hashes
}

/** Engines name blocks by bytes or by integers, depending on their settings. */
const readHash = (value: unknown): string | undefined => {
  if (value instanceof Uint8Array) {
    return `b${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1')}`
  }
  return typeof value === 'bigint' || Number.isSafeInteger(value) ? `i${String(value)}` : undefined
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
