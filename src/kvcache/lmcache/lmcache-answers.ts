import * as z from 'zod'

/** How LMCache names one piece of KV: a chunk of tokens, of one worker's share and one group of layers. */
export const objectKeySchema = z.object({
  chunk_hash_hex: z.string().regex(/^[0-9a-f]{8,128}$/),
  model_name: z.string().max(4096),
  kv_rank: z.number(),
  object_group_id: z.number(),
  cache_salt: z.string().max(256),
})

/** Where a piece lies now: `l1` is memory beside an engine, `l2` the store behind it. */
const placementSchema = z.object({
  instance_id: z.string(),
  tier: z.string(),
  size_bytes: z.number(),
})

const entrySchema = z.object({ key: objectKeySchema, placements: z.array(placementSchema) })

/** `POST /directory/lookup`: `chunks` whole chunks, and for each its keys (one per worker and layer group) in order. */
export const lookupSchema = z.object({ chunks: z.int().min(0), results: z.array(entrySchema).max(1_000_000) })

/** `GET /directory/keys`. */
export const listingSchema = z.object({ total: z.int().min(0), keys: z.array(entrySchema) })

/** `GET /instances`. */
export const instancesSchema = z.object({
  instances: z.array(
    z.object({ instance_id: z.string().min(1), ip: z.string().min(1), http_port: z.int().min(1).max(65_535) }),
  ),
})

/** `GET /status` of one server. */
export const statusSchema = z.object({ chunk_size: z.int().min(1).max(1_000_000) })

/** `GET /quota/{salt}`. */
export const usageSchema = z.object({ usage_gb: z.number().min(0) })

/** `DELETE /cache/objects` of one server. */
export const deletedSchema = z.object({ deleted: z.int().min(0), skipped: z.int().min(0), ok: z.boolean() })

/** Answers of which only the status counts. */
export const anySchema = z.unknown()

export type ObjectKey = z.infer<typeof objectKeySchema>
export type DirectoryEntry = z.infer<typeof entrySchema>
