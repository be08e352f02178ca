import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import { type ChunkKey, keySchema } from './chunk-keys.ts'
import { type ChunkStore, createChunkStore } from './chunk-store.ts'
import type { Directory } from './directory.ts'
import { notFound, type SimCall, type SimFault, type SimReply, type SimServer, startSimServer } from './sim-server.ts'

/** One LMCache server, beside one engine. */
export interface LmcacheInstance {
  readonly id: string
  readonly server: SimServer
  /** Its own memory. */
  readonly memory: ChunkStore
  /** How many leading chunks its engine could take from it. They are in its memory then. None while it is down. */
  fetch(keys: readonly ChunkKey[]): number
  /** Writes through to memory and store, a little later. Nothing while the server is down. */
  write(keys: readonly ChunkKey[]): void
  deleteChunks(keys: readonly ChunkKey[], tier: 'l1' | 'l2' | 'all'): number
  /** Chunks that a turn reads or writes there, by their hash: its memory keeps them. */
  readonly inUse: Set<string>
  /** The process ended and began again: its memory is gone. */
  restart(): void
}

const deleteSchema = z.object({
  keys: z.array(keySchema),
  tier: z.enum(['l1', 'l2', 'all']).default('l2'),
  force: z.boolean().default(false),
})

export const startLmcacheInstance = async (options: {
  readonly id: string
  readonly chunkTokens: number
  readonly writeMs: number
  readonly store: ChunkStore
  readonly directory: Directory
  readonly intercept: (call: SimCall) => SimFault | undefined
}): Promise<LmcacheInstance> => {
  const { id, store, directory, chunkTokens } = options
  const memory = createChunkStore()
  const inUse = new Set<string>()
  let life = 0
  let isUp = true

  const keep = (tier: 'l1' | 'l2', key: ChunkKey): void => {
    const place = tier === 'l1' ? memory : store
    place.put(key)
    directory.report({ kind: 'stored', instanceId: id, tier, key })
  }
  const fetchToMemory = (keys: readonly ChunkKey[]): number => {
    const missing = keys.findIndex((key) => !memory.has(key) && !store.has(key))
    const found = missing === -1 ? keys : keys.slice(0, missing)
    for (const key of found) if (!memory.has(key)) keep('l1', key)
    return found.length
  }
  const deleteChunks: LmcacheInstance['deleteChunks'] = (keys, tier) => {
    const places = [
      { tier: 'l1', place: memory },
      { tier: 'l2', place: store },
    ] as const
    let deleted = 0
    for (const { tier: name, place } of places) {
      if (tier !== 'all' && tier !== name) continue
      for (const key of keys) {
        // What was not there is not reported, so an entry of it stays in the directory.
        if (!place.delete(key)) continue
        deleted += 1
        directory.report({ kind: 'deleted', instanceId: id, tier: name, key })
      }
    }
    return deleted
  }

  const handle = (request: { readonly method: string; readonly path: string; readonly body: unknown }): SimReply => {
    switch (`${request.method} ${request.path}`) {
      case 'GET /status':
        return { status: 200, body: { is_healthy: true, engine_type: 'MPCacheServer', chunk_size: chunkTokens } }
      case 'DELETE /cache/objects': {
        const { keys, tier, force } = deleteSchema.parse(request.body)
        const isKept = ({ chunk_hash_hex: name }: ChunkKey): boolean => tier !== 'l2' && !force && inUse.has(name)
        const free = keys.filter((key) => !isKept(key))
        const skipped = keys.length - free.length
        return { status: 200, body: { deleted: deleteChunks(free, tier), skipped, ok: true } }
      }
      default:
        return notFound
    }
  }

  const server = await startSimServer({ name: id, intercept: options.intercept, handle })
  return {
    id,
    memory,
    inUse,
    server: {
      ...server,
      stop: async () => {
        isUp = false
        await server.stop()
      },
      start: async () => {
        isUp = true
        await server.start()
      },
    },
    fetch: (keys) => (isUp ? fetchToMemory(keys) : 0),
    write: (keys) => {
      const writtenIn = life
      void delay(options.writeMs).then(() => {
        if (!isUp || writtenIn !== life) return
        for (const key of keys) keep('l1', key)
        for (const key of keys) keep('l2', key)
      })
    },
    deleteChunks,
    restart: () => {
      life += 1
      memory.clear()
      directory.dropMemory(id)
    },
  }
}
