import { decode } from '@msgpack/msgpack'
import type { SlicedWork } from '../../async/slices.ts'
import { decodedBytes } from './decoded-bytes.ts'

/** What an engine reports of its own cache, reduced to blocks of turns and to what LMCache names by tokens alone. */
export type KvEvent =
  | BlocksReported
  | { readonly kind: 'removed'; readonly hashes: readonly BlockHash[] }
  | { readonly kind: 'cleared' }

/** Blocks that follow one another in the chain of a turn, filled or reused by it. */
export interface BlocksReported {
  readonly kind: 'reported'
  /** The request's `session_id`. */
  readonly turnId: string
  /** The block in front of them; undefined: they begin the chain. */
  readonly after: BlockHash | undefined
  /** One per block, at least one. */
  readonly hashes: readonly BlockHash[]
  /** All blocks' tokens, one after the other. */
  readonly tokens: Uint32Array
  /** Tokens of one block. */
  readonly blockTokens: number
}

/** The engine's name of a block and of all blocks before it: bytes (as latin1) or an integer, as the engine is set. */
export type BlockHash = string | number | bigint

/** vLLM names the tier of its own cache `GPU`, also on a CPU. An event without a tier is older and means the same. */
const ownMedium = 'GPU'
const maxHashBytes = 64
/** A batch that would take more memory is not decoded. Enough for a turn of 350,000 tokens in blocks of 16. */
export const maxDecodedBytes = 20 * 1024 * 1024
const maxTurnIdLength = 64

/**
 * Reads vLLM's KV events: msgpack of `[timestamp, events, rank?]`, each event a map with a `type`. Undefined:
 * malformed, or too large. Left out: unknown types, requests without `session_id`, other tiers and cache groups, gaps
 * (sliding windows), and blocks from the first that depends on more than tokens, salt and adapter (images, embeddings).
 * In slices: a long turn takes 5 to 8 ms for each.
 */
export function* decodeEvents(batch: Uint8Array): SlicedWork<readonly KvEvent[] | undefined> {
  if (attempt(() => decodedBytes(batch) <= maxDecodedBytes) !== true) return undefined
  yield
  const content = attempt(() => decode(batch, { useBigInt64: true }))
  if (!Array.isArray(content) || !Array.isArray(content[1])) return undefined
  yield
  const events = content[1].map((item) => readEvent(item))
  return events.includes('malformed') ? undefined : events.filter((event) => typeof event !== 'string')
}

type Fields = Readonly<Record<string, unknown>>

/** Undefined: it threw. */
const attempt = (work: () => unknown): unknown => {
  try {
    return work()
  } catch {
    return undefined
  }
}

const readEvent = (item: unknown): KvEvent | 'irrelevant' | 'malformed' => {
  if (!isFields(item)) return 'malformed'
  switch (item['type']) {
    case 'BlockStored':
      return readReported(item)
    case 'BlockRemoved': {
      const hashes = readHashes(item['block_hashes'])
      if (hashes === undefined) return 'malformed'
      return isOwnCache(item) ? { kind: 'removed', hashes } : 'irrelevant'
    }
    case 'AllBlocksCleared':
      return { kind: 'cleared' }
    default:
      return typeof item['type'] === 'string' ? 'irrelevant' : 'malformed'
  }
}

const readReported = (fields: Fields): KvEvent | 'irrelevant' | 'malformed' => {
  const turnId = fields['session_id']
  if (typeof turnId !== 'string' || turnId.length > maxTurnIdLength || !isOwnCache(fields)) return 'irrelevant'
  const hashes = readHashes(fields['block_hashes'])
  const tokens = readTokenIds(fields['token_ids'])
  const blockTokens = fields['block_size']
  const parent = fields['parent_block_hash'] ?? undefined
  const after = parent === undefined ? undefined : readHash(parent)
  const isSized = typeof blockTokens === 'number' && blockTokens > 0
  if (hashes === undefined || tokens === undefined || !isSized) return 'malformed'
  if (parent !== undefined && after === undefined) return 'malformed'
  if (tokens.length !== hashes.length * blockTokens) return 'irrelevant'

  const count = plainBlocks(fields, hashes.length, after === undefined)
  if (count === undefined) return 'irrelevant'
  return {
    kind: 'reported',
    turnId,
    after,
    hashes: hashes.slice(0, count),
    tokens: tokens.slice(0, count * blockTokens),
    blockTokens,
  }
}

/** How many leading blocks depend only on their tokens, the adapter and, for the first one, the salt; if it is known. */
const plainBlocks = (fields: Fields, blocks: number, isRoot: boolean): number | undefined => {
  const keys = fields['extra_keys']
  if (!Array.isArray(keys) || keys.length !== blocks) return undefined
  const lora = fields['lora_name']
  const isPlain = (own: unknown, at: number): boolean => {
    if (own === null) return true
    if (!Array.isArray(own)) return false
    const others = typeof lora === 'string' && own[0] === lora ? own.slice(1) : own
    return others.length === 0 || (isRoot && at === 0 && others.length === 1 && typeof others[0] === 'string')
  }
  const end = keys.findIndex((own, at) => !isPlain(own, at))
  return end === -1 ? blocks : end
}

const isOwnCache = (fields: Fields): boolean =>
  (fields['medium'] ?? ownMedium) === ownMedium &&
  (fields['group_idx'] ?? 0) === 0 &&
  (fields['locality'] ?? 'LOCAL') === 'LOCAL'

/** The token ids of a decoded list. Undefined: it is no list, or not all in it are whole numbers of 32 bits. */
const readTokenIds = (value: unknown): Uint32Array | undefined => {
  if (!Array.isArray(value)) return undefined
  const list: readonly unknown[] = value
  const tokens = new Uint32Array(list.length)
  for (let at = 0; at < list.length; at += 1) {
    const token = list[at]
    if (typeof token !== 'number') return undefined
    tokens[at] = token
    // What the array made another number of was none.
    if (tokens[at] !== token) return undefined
  }
  return tokens
}

const readHashes = (value: unknown): readonly BlockHash[] | undefined => {
  if (!Array.isArray(value)) return undefined
  const hashes = value.map(readHash)
  return hashes.every((hash) => hash !== undefined) ? hashes : undefined
}

const readHash = (value: unknown): BlockHash | undefined => {
  if (typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))) return value
  if (!(value instanceof Uint8Array) || value.byteLength > maxHashBytes) return undefined
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1')
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
