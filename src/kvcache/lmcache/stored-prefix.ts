import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import type { ObjectKey } from './lmcache-client.ts'

const maxChunks = 100_000
/** `maxChunks` hashes of 64 digits, and room for the other members. */
const maxPayloadLength = 8_000_000
const chunkHash = /^[0-9a-f]{8,128}$/
const piece = z.tuple([z.number(), z.number()]).readonly()

const members = z.strictObject({
  v: z.literal(2),
  artefactId: z.string().min(1).max(64),
  /** The turn that left the KV, as the engine's events name it. */
  turnId: z.string().min(1).max(64),
  modelRoot: z.string().min(1).max(4096),
  salt: z.string().regex(/^[0-9a-f]{32}$/),
  /** The session's life in its salt; empty where the salt is the tenant's. */
  life: z.string().max(64),
  /** Hashes of the prefix's chunks, in order. */
  chunks: z.array(z.string().regex(chunkHash)).max(maxChunks).readonly(),
  /** Each chunk lies in so many pieces, one per worker and group of layers: LMCache's kv_rank and object_group_id. */
  pieces: z.array(piece).max(4096).readonly(),
  /** Tokens of one chunk. */
  chunkTokens: z.int().min(1).max(1_000_000),
})

/** What is kept with a session of its KV in LMCache: enough to find and delete it. No token and no prompt. */
export type StoredPrefix = Readonly<Omit<z.infer<typeof members>, 'v'>>

const schema = members.transform(({ v: _version, ...stored }): StoredPrefix => stored)

/** As the artefact's payload. */
export const encodeStoredPrefix = (stored: StoredPrefix): string => JSON.stringify({ v: 2, ...stored })

/** Undefined for what is no payload of this version. */
export const parseStoredPrefix = (payload: string) => schema.safeParse(readJson(payload, maxPayloadLength)).data

/** LMCache's names of the chunks' pieces, chunk by chunk. */
export const objectKeysOf = (
  stored: Pick<StoredPrefix, 'modelRoot' | 'salt' | 'pieces'>,
  chunks: readonly string[],
): readonly ObjectKey[] =>
  chunks.flatMap((chunk) =>
    stored.pieces.map(([rank, group]) => ({
      chunk_hash_hex: chunk,
      model_name: stored.modelRoot,
      kv_rank: rank,
      object_group_id: group,
      cache_salt: stored.salt,
    })),
  )
