import type * as z from 'zod'
import type { EngineCall, EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'
import {
  anySchema,
  type DirectoryEntry,
  deletedSchema,
  instancesSchema,
  listingSchema,
  lookupSchema,
  type ObjectKey,
  prefetchSchema,
  prefetchStatusSchema,
  statusSchema,
  usageSchema,
  usagesSchema,
} from './lmcache-answers.ts'
import { prefixBody } from './prefix-body.ts'

/** A prefix as LMCache's interfaces take it: token ids from position 0. */
export interface TokenPrefix {
  /** As the engine names its model towards LMCache: the path it was given. */
  readonly modelRoot: string
  readonly salt: string
  readonly tokens: Uint32Array
}

/** One LMCache server, which serves one engine. */
export interface LmcacheInstance {
  readonly id: string
  readonly ip: string
  /** `host:port` of its own HTTP interface. */
  readonly address: string
}

export interface DoomedObjects {
  readonly keys: readonly ObjectKey[]
  readonly tier: 'l1' | 'l2'
}

export type PrefetchState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'completed'; readonly foundKeys: number; readonly totalKeys: number }

/**
 * LMCache's HTTP interfaces (multiprocess server and coordinator, 0.5.6): one coordinator for the fleet, one server per engine. Every call
 * rejects with `LmcacheFault` when it is not answered as it should be.
 */
export interface LmcacheClient {
  healthy(signal: AbortSignal): Promise<void>
  instances(signal: AbortSignal): Promise<readonly LmcacheInstance[]>
  /** Tokens of one chunk, as the instance at this address is set. */
  chunkTokens(address: string, signal: AbortSignal): Promise<number>
  /** Names and places of a prefix's whole chunks, in order. */
  lookup(prefix: TokenPrefix, signal: AbortSignal): Promise<{ chunks: number; entries: readonly DirectoryEntry[] }>
  /** Where these are now. In the order of the keys. */
  locate(keys: readonly ObjectKey[], signal: AbortSignal): Promise<readonly DirectoryEntry[]>
  /** Everything under the salt, on all instances and tiers. */
  keysOfSalt(salt: string, signal: AbortSignal): Promise<readonly ObjectKey[]>
  /** Starts to bring a prefix from the store into the memory beside an engine. Undefined: it is shorter than one chunk. */
  prefetch(prefix: TokenPrefix, instanceId: string, signal: AbortSignal): Promise<string | undefined>
  prefetchState(instanceId: string, requestId: string, signal: AbortSignal): Promise<PrefetchState>
  /** Keeps the prefix's chunks from eviction. Counted: every `pin` needs its `unpin`. */
  pin(prefix: TokenPrefix, signal: AbortSignal): Promise<void>
  unpin(prefix: TokenPrefix, signal: AbortSignal): Promise<void>
  /** Deletes from the instance's memory (`l1`) or from its store (`l2`), pinned or in use or not. Idempotent; done when it resolves. */
  deleteObjects(address: string, objects: DoomedObjects, signal: AbortSignal): Promise<void>
  /** GiB that lie under the salt in one tier. Lags by some seconds. */
  usageGb(salt: string, tier: 'l1' | 'l2', signal: AbortSignal): Promise<number>
  /** All salts under which anything lies in one tier. */
  salts(tier: 'l1' | 'l2', signal: AbortSignal): Promise<readonly string[]>
  /** Lets the coordinator evict everything under the salt that is not pinned, from the store. */
  forbidSalt(salt: string, signal: AbortSignal): Promise<void>
  allowSalt(salt: string, signal: AbortSignal): Promise<void>
}

/** LMCache did not answer, or not as documented. Its message names no token and no salt. */
export class LmcacheFault extends Error {
  override readonly name = 'LmcacheFault'
}

/** LMCache takes at most 10,000 keys at a time. */
const keysPerDelete = 5_000
const keysPerLookup = 2_000
const keysPerPage = 2_000
const maxPages = 5_000

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
    const path = nameOf(call.path)
    const reply = await http.call({ pod: coordinator, ...call })
    if (reply.kind !== 'answered')
      throw new LmcacheFault(`${call.method} ${path} was not answered`, { cause: reply.cause })
    if (reply.status < 200 || reply.status >= 300)
      throw new LmcacheFault(`${call.method} ${path} was answered with ${reply.status}`)
    const parsed = schema.safeParse(readJson(reply.text))
    if (!parsed.success) throw new LmcacheFault(`${call.method} ${path} was answered with something else`)
    return parsed.data
  }

  const bodyOf = ({ modelRoot, salt, tokens }: TokenPrefix, others: { readonly instance_id?: string } = {}) =>
    prefixBody({ ...others, model_name: modelRoot, world_size: worldSize, cache_salt: salt }, tokens)

  return {
    healthy: async (signal) => {
      await ask(anySchema, { method: 'GET', path: '/healthz', signal })
    },
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
    lookup: async (prefix, signal) => {
      const body = bodyOf(prefix)
      const { chunks, results } = await ask(lookupSchema, { method: 'POST', path: '/directory/lookup', body, signal })
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
    keysOfSalt: async (salt, signal) => {
      const found: ObjectKey[] = []
      for (let page = 0; page < maxPages; page += 1) {
        const path = `/directory/keys?limit=${keysPerPage}&offset=${page * keysPerPage}`
        const { keys, total } = await ask(listingSchema, { method: 'GET', path, signal })
        for (const { key } of keys) if (key.cache_salt === salt) found.push(key)
        if (keys.length === 0 || (page + 1) * keysPerPage >= total) break
      }
      return found
    },
    prefetch: async (prefix, instanceId, signal) => {
      const body = bodyOf(prefix, { instance_id: instanceId })
      const answer = await ask(prefetchSchema, { method: 'POST', path: '/cache/prefetches', body, signal })
      return answer.request_id === '' ? undefined : answer.request_id
    },
    prefetchState: async (instanceId, requestId, signal) => {
      const path = `/cache/prefetches/${encodeURIComponent(instanceId)}/${encodeURIComponent(requestId)}`
      const state = await ask(prefetchStatusSchema, { method: 'GET', path, signal })
      if (state.status !== 'completed') return { kind: 'pending' }
      return { kind: 'completed', foundKeys: state.found_keys ?? 0, totalKeys: state.total_keys ?? 0 }
    },
    pin: async (prefix, signal) => {
      await ask(anySchema, { method: 'POST', path: '/cache/pins', body: bodyOf(prefix), signal })
    },
    unpin: async (prefix, signal) => {
      await ask(anySchema, { method: 'DELETE', path: '/cache/pins', body: bodyOf(prefix), signal })
    },
    deleteObjects: async (address, { keys, tier }, signal) => {
      for (const batch of batchesOf(keys, keysPerDelete)) {
        const body = { keys: batch, tier, force: true }
        const { ok } = await ask(deletedSchema, {
          method: 'DELETE',
          pod: address,
          path: '/cache/objects',
          body,
          signal,
        })
        if (!ok) throw new LmcacheFault('DELETE /cache/objects did not delete everything')
      }
    },
    usageGb: async (salt, tier, signal) =>
      (await ask(usageSchema, { method: 'GET', path: `/quota/${salt}?tier=${tier}`, signal })).usage_gb,
    salts: async (tier, signal) => {
      const { by_cache_salt } = await ask(usagesSchema, { method: 'GET', path: `/quota?tier=${tier}`, signal })
      return by_cache_salt.filter(({ usage_gb }) => usage_gb > 0).map(({ cache_salt }) => cache_salt)
    },
    forbidSalt: async (salt, signal) => {
      await ask(anySchema, { method: 'PUT', path: `/quota/${salt}`, body: { limit_gb: 0 }, signal })
    },
    allowSalt: async (salt, signal) => {
      await ask(anySchema, { method: 'DELETE', path: `/quota/${salt}`, signal })
    },
  }
}

/** A path without what identifies anything: the parts behind the first two, and a quota's salt. */
const nameOf = (path: string): string => {
  const [, first, second] = path.split(/[/?]/)
  return first === 'quota' || second === undefined ? `/${first}` : `/${first}/${second}`
}

function* batchesOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}
