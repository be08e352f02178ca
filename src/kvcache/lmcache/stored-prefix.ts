import * as z from 'zod'
import { readJson } from '../../json/read-json.ts'
import type { ObjectKey } from './lmcache-answers.ts'

/** What is kept with a session of its KV in LMCache: enough to find, load and delete it. No token and no prompt. */
export interface StoredPrefix {
  readonly artefactId: string
  /** The turn that left the KV, as the engine's events name it. */
  readonly turnId: string
  readonly modelRoot: string
  readonly salt: string
  /** The session's life in its salt; empty where the salt is the tenant's. */
  readonly life: string
  /** The salt is the session's alone: it goes with the session, with everything under it. */
  readonly isOwnSalt: boolean
  /** Hashes of the prefix's chunks, in order. */
  readonly chunks: readonly string[]
  /** Each chunk lies in so many pieces: one per worker and group of layers. */
  readonly pieces: readonly Piece[]
  /** Tokens of one chunk. */
  readonly chunkTokens: number
  /** Opens the artefact's token ids for the one purpose of unpinning them; sealed under the gateway's own secret. */
  readonly unpinKey: string
}

/** LMCache's kv_rank and object_group_id. */
export type Piece = readonly [rank: number, group: number]

const maxChunks = 100_000
const chunkHash = /^[0-9a-f]{8,128}$/

const isChunkList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length <= maxChunks &&
  value.every((chunk: unknown) => typeof chunk === 'string' && chunkHash.test(chunk))

const schema = z.strictObject({
  v: z.literal(1),
  a: z.string().min(1).max(64),
  n: z.string().min(1).max(64),
  m: z.string().min(1).max(4096),
  s: z.string().regex(/^[0-9a-f]{32}$/),
  l: z.string().max(64),
  o: z.boolean(),
  // One check for all, since a long conversation has hundreds.
  c: z.custom<readonly string[]>((value) => isChunkList(value)),
  p: z
    .array(z.tuple([z.number(), z.number()]))
    .min(1)
    .max(4096),
  t: z.int().min(1).max(1_000_000),
  u: z.string().max(512),
})

export const encodeStoredPrefix = (stored: StoredPrefix): string =>
  JSON.stringify({
    v: 1,
    a: stored.artefactId,
    n: stored.turnId,
    m: stored.modelRoot,
    s: stored.salt,
    l: stored.life,
    o: stored.isOwnSalt,
    c: stored.chunks,
    p: stored.pieces,
    t: stored.chunkTokens,
    u: stored.unpinKey,
  })

/** Undefined for what is no payload of this version. */
export const parseStoredPrefix = (payload: string): StoredPrefix | undefined => {
  const parsed = schema.safeParse(readJson(payload))
  if (!parsed.success) return undefined
  const { a, n, m, s, l, o, c, p, t, u } = parsed.data
  return {
    artefactId: a,
    turnId: n,
    modelRoot: m,
    salt: s,
    life: l,
    isOwnSalt: o,
    chunks: c,
    pieces: p,
    chunkTokens: t,
    unpinKey: u,
  }
}

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
