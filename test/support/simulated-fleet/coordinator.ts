import * as z from 'zod'
import { type ChunkKey, chunkKeysOf, keySchema } from './chunk-keys.ts'
import type { Directory } from './directory.ts'
import type { LmcacheInstance } from './lmcache-instance.ts'
import {
  notFound,
  type SimCall,
  type SimFault,
  type SimReply,
  type SimRequest,
  type SimServer,
  startSimServer,
} from './sim-server.ts'

const lookupSchema = z.object({
  model_name: z.string().default(''),
  cache_salt: z.string().default(''),
  token_ids: z.array(z.int()).default([]),
  keys: z.array(keySchema).default([]),
})

/** LMCache's coordinator: it knows of the fleet what the directory was told. */
export const startCoordinator = (options: {
  readonly instances: readonly LmcacheInstance[]
  /** Instances that have not registered. */
  readonly absent: ReadonlySet<string>
  readonly directory: Directory
  readonly chunkTokens: number
  readonly intercept: (call: SimCall) => SimFault | undefined
}): Promise<SimServer> => {
  const { directory, chunkTokens } = options
  const instances = (): readonly LmcacheInstance[] => options.instances.filter(({ id }) => !options.absent.has(id))
  const found = (key: ChunkKey) => ({ key, placements: directory.placements(key), token_ids: [], access_count: 0 })

  const lookup = (body: unknown): SimReply => {
    const { keys, model_name, cache_salt, token_ids } = lookupSchema.parse(body)
    const wanted = keys.length > 0 ? keys : chunkKeysOf({ model_name, cache_salt, token_ids }, chunkTokens)
    return { status: 200, body: { chunks: wanted.length, results: wanted.map(found) } }
  }

  const handle = ({ method, path, body }: SimRequest): SimReply => {
    switch (`${method} ${path}`) {
      case 'GET /healthz':
        return { status: 200, body: { status: 'healthy' } }
      case 'GET /instances':
        return { status: 200, body: { instances: instances().map(describe) } }
      case 'POST /directory/lookup':
        return lookup(body)
      default:
        return notFound
    }
  }

  return startSimServer({ name: 'coordinator', intercept: options.intercept, handle })
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
