import * as z from 'zod'
import { type ChunkKey, chunkKeysOf } from './chunk-keys.ts'
import type { Directory } from './directory.ts'
import { keySchema, type LmcacheInstance } from './lmcache-instance.ts'
import {
  notFound,
  type SimCall,
  type SimFault,
  type SimReply,
  type SimRequest,
  type SimServer,
  startSimServer,
} from './sim-server.ts'

/** LMCache's coordinator: directory and quotas of the fleet. */
export interface Coordinator {
  readonly server: SimServer
  /** Salts that have a quota. */
  quotas(): readonly string[]
  /** Evicts nothing until it is called again with false. */
  holdEviction(isHeld: boolean): void
  /** The process ended and began again: nothing that it was told is known. Instances register anew. */
  restart(): void
  close(): Promise<void>
}

const lookupSchema = z.object({
  model_name: z.string().default(''),
  cache_salt: z.string().default(''),
  token_ids: z.array(z.int()).default([]),
  keys: z.array(keySchema).default([]),
})

const bytesPerGib = 1024 ** 3

export const startCoordinator = async (options: {
  readonly instances: readonly LmcacheInstance[]
  /** Instances that have not registered. */
  readonly absent: ReadonlySet<string>
  readonly directory: Directory
  readonly modelRoot: string
  readonly chunkTokens: number
  readonly evictionMs: number
  readonly intercept: (call: SimCall) => SimFault | undefined
}): Promise<Coordinator> => {
  const { directory, chunkTokens } = options
  const quotas = new Map<string, number>()

  const instances = (): readonly LmcacheInstance[] => options.instances.filter(({ id }) => !options.absent.has(id))
  const found = (key: ChunkKey) => ({ key, placements: directory.placements(key), token_ids: [], access_count: 0 })

  const lookup = (body: unknown): SimReply => {
    const { keys, model_name, cache_salt, token_ids } = lookupSchema.parse(body)
    const wanted = keys.length > 0 ? keys : chunkKeysOf({ model_name, cache_salt, token_ids }, chunkTokens)
    return { status: 200, body: { chunks: wanted.length, results: wanted.map(found) } }
  }

  const listing = (query: URLSearchParams): SimReply => {
    const offset = Number(query.get('offset') ?? 0)
    const limit = Number(query.get('limit') ?? 1_000)
    const tier = query.get('tier') ?? 'all'
    const entries = directory
      .entries()
      .filter(({ placements }) => tier === 'all' || placements.some((placement) => placement.tier === tier))
    const keys = entries.slice(offset, offset + limit).map((entry) => ({ ...entry, num_tokens: 0, access_count: 1 }))
    return { status: 200, body: { total: entries.length, keys } }
  }

  const usageOf = (salt: string) => ({
    cache_salt: salt,
    quota_limit_gb: quotas.get(salt) ?? 0,
    quota_exists: quotas.has(salt),
    usage_gb: (directory.usage().get(salt) ?? 0) / bytesPerGib,
  })

  const quota = ({ method, body }: SimRequest, salt: string): SimReply => {
    switch (method) {
      case 'PUT': {
        const { limit_gb } = z.object({ limit_gb: z.number() }).parse(body)
        quotas.set(salt, limit_gb)
        return { status: 200, body: { cache_salt: salt, limit_gb, status: 'ok' } }
      }
      case 'DELETE': {
        const status = quotas.delete(salt) ? 'removed' : 'not_found'
        return { status: 200, body: { cache_salt: salt, limit_gb: 0, status } }
      }
      default:
        return { status: 200, body: usageOf(salt) }
    }
  }

  let isEvictionHeld = false
  const evict = (): void => {
    if (isEvictionHeld) return
    const [first] = instances()
    const doomed = directory
      .entries()
      .filter(({ key }) => quotas.get(key.cache_salt) === 0)
      .map(({ key }) => key)
    if (doomed.length > 0) first?.deleteChunks(doomed, 'l2')
  }

  const handle = (request: SimRequest): SimReply => {
    const { method, path, query, body } = request
    const [, first, second] = path.split('/').map(decodeURIComponent)
    if (first === 'quota' && second !== undefined) return quota(request, second)
    switch (`${method} ${path}`) {
      case 'GET /healthz':
        return { status: 200, body: { status: 'healthy' } }
      case 'GET /instances':
        return { status: 200, body: { instances: instances().map(describe) } }
      case 'POST /directory/lookup':
        return lookup(body)
      case 'GET /directory/keys':
        return listing(query)
      default:
        return notFound
    }
  }

  const server = await startSimServer({ name: 'coordinator', intercept: options.intercept, handle })
  const evicting = setInterval(evict, options.evictionMs)
  return {
    server,
    quotas: () => [...quotas.keys()],
    holdEviction: (isHeld) => {
      isEvictionHeld = isHeld
    },
    restart: () => {
      directory.forget()
      quotas.clear()
    },
    close: async () => {
      clearInterval(evicting)
      await server.stop()
    },
  }
}

const describe = ({ id, server }: LmcacheInstance) => ({
  instance_id: id,
  ip: '127.0.0.1',
  http_port: server.port,
  registration_time: 1,
  metadata: {},
  p2p_advertised_url: '',
  mq_port: 0,
})
