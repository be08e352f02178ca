import * as z from 'zod'
import { batchesOf } from '../../async/batches-of.ts'
import type { EngineCall, EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'

/** How LMCache names one piece of KV: a chunk of tokens, of one worker's share and one group of layers. */
const objectKeySchema = z.object({
  chunk_hash_hex: z.string().regex(/^[0-9a-f]{8,128}$/),
  model_name: z.string().max(4096),
  kv_rank: z.number(),
  object_group_id: z.number(),
  cache_salt: z.string().max(256),
})

/** Where a piece lies now: `l1` is memory beside an engine, `l2` the store behind it. */
const placementSchema = z.object({ instance_id: z.string(), tier: z.string(), size_bytes: z.number() })

const entrySchema = z.object({ key: objectKeySchema, placements: z.array(placementSchema) })

/** `POST /directory/lookup`: `chunks` whole chunks, and for each its keys (one per worker and layer group) in order. */
const lookupSchema = z.object({ chunks: z.int().min(0), results: z.array(entrySchema).max(1_000_000) })

/** `GET /instances`. */
const instancesSchema = z.object({
  instances: z.array(
    z.object({ instance_id: z.string().min(1), ip: z.string().min(1), http_port: z.int().min(1).max(65_535) }),
  ),
})

/** `GET /status` of one server. */
const statusSchema = z.object({ chunk_size: z.int().min(1).max(1_000_000) })

/** `DELETE /cache/objects` of one server. */
const deletedSchema = z.object({ ok: z.boolean(), skipped: z.int().min(0) })

export type ObjectKey = z.infer<typeof objectKeySchema>
export type DirectoryEntry = z.infer<typeof entrySchema>

/** One LMCache server, which serves one engine. */
export interface LmcacheInstance {
  readonly id: string
  readonly ip: string
  /** `host:port` of its own HTTP interface. */
  readonly address: string
}

/** Objects to delete from the memory (`l1`) or the store (`l2`) of the instance at this address. */
interface Deletion {
  readonly address: string
  readonly keys: readonly ObjectKey[]
  readonly tier: 'l1' | 'l2'
}

/** LMCache did not answer, or not as documented. Its message names no token and no salt. */
export class LmcacheFault extends Error {
  override readonly name = 'LmcacheFault'
}

/** LMCache takes at most 10,000 keys at a time. */
const keysPerDelete = 5_000
/** An entry takes some 500 bytes, and several KB where the directory keeps token ids. */
const keysPerLookup = 500
/** A prefix is looked up in one call: 60,000 chunks without token ids. */
export const maxAnswerBytes = 32 * 1024 * 1024

/**
 * LMCache's HTTP interfaces (multiprocess server and coordinator, 0.5.6): one coordinator for the fleet, one server per
 * engine. Every call rejects with `LmcacheFault` when it is not answered as it should be.
 */
export interface LmcacheClient {
  /** Resolves if the coordinator answers. */
  healthy(signal: AbortSignal): Promise<unknown>
  /** The LMCache servers that are registered with the coordinator. */
  instances(signal: AbortSignal): Promise<readonly LmcacheInstance[]>
  /** Tokens of one chunk, as the instance at this address is set. */
  chunkTokens(pod: string, signal: AbortSignal): Promise<number>
  /** Names and places of whole chunks, from position 0. `modelRoot`: the model's path as the engine was given it. */
  lookup(
    prefix: { readonly modelRoot: string; readonly salt: string; readonly tokens: Uint32Array },
    signal: AbortSignal,
  ): Promise<{ readonly chunks: number; readonly entries: readonly DirectoryEntry[] }>
  /** Where these are now. In the order of the keys. */
  locate(keys: readonly ObjectKey[], signal: AbortSignal): Promise<readonly DirectoryEntry[]>
  /** Idempotent. Resolves to how many stay because LMCache reads or writes them: with `force` a turn would fail. */
  deleteObjects(deletion: Deletion, signal: AbortSignal): Promise<number>
}

export const createLmcacheClient = (options: {
  readonly http: EngineHttp
  /** `host:port` of the coordinator. */
  readonly coordinator: string
  /** Workers that share one model (tensor times pipeline parallel size). */
  readonly worldSize: number
}): LmcacheClient => {
  const { http, coordinator, worldSize } = options

  const ask = async <T>(
    schema: z.ZodType<T>,
    call: Omit<EngineCall, 'pod'> & { readonly pod?: string },
  ): Promise<T> => {
    const { method, path } = call
    const reply = await http.call({ pod: coordinator, ...call })
    if (reply.kind !== 'answered') throw new LmcacheFault(`${method} ${path} was not answered`, { cause: reply.cause })
    if (reply.status < 200 || reply.status >= 300)
      throw new LmcacheFault(`${method} ${path} was answered with ${reply.status}`)
    const parsed = schema.safeParse(readJson(reply.text, maxAnswerBytes))
    if (!parsed.success) throw new LmcacheFault(`${method} ${path} was answered with something else`)
    return parsed.data
  }

  return {
    healthy: (signal) => ask(z.unknown(), { method: 'GET', path: '/healthz', signal }),
    instances: async (signal) => {
      const { instances } = await ask(instancesSchema, { method: 'GET', path: '/instances', signal })
      return instances.map(({ instance_id, ip, http_port }) => ({
        id: instance_id,
        ip,
        address: `${ip.includes(':') ? `[${ip}]` : ip}:${http_port}`,
      }))
    },
    chunkTokens: async (pod, signal) =>
      (await ask(statusSchema, { method: 'GET', pod, path: '/status', signal })).chunk_size,
    lookup: async ({ modelRoot, salt, tokens }, signal) => {
      const body = { token_ids: [...tokens], model_name: modelRoot, world_size: worldSize, cache_salt: salt }
      const { chunks, results } = await ask(lookupSchema, { method: 'POST', path: '/directory/lookup', body, signal })
      if (results.length < chunks || results.length % Math.max(1, chunks) > 0)
        throw new LmcacheFault('POST /directory/lookup answered with chunks of different pieces')
      return { chunks, entries: results }
    },
    locate: async (keys, signal) => {
      const entries: DirectoryEntry[] = []
      for (const batch of batchesOf(keys, keysPerLookup)) {
        const body = { keys: batch }
        const { results } = await ask(lookupSchema, { method: 'POST', path: '/directory/lookup', body, signal })
        if (results.length !== batch.length) throw new LmcacheFault('POST /directory/lookup answered for other keys')
        entries.push(...results)
      }
      return entries
    },
    deleteObjects: async ({ address, keys, tier }, signal) => {
      let inUse = 0
      for (const batch of batchesOf(keys, keysPerDelete)) {
        const call = { method: 'DELETE', pod: address, path: '/cache/objects', signal } as const
        const { ok, skipped } = await ask(deletedSchema, { ...call, body: { keys: batch, tier } })
        if (!ok) throw new LmcacheFault('DELETE /cache/objects did not delete everything')
        inUse += skipped
      }
      return inUse
    },
  }
}
