import { LRUCache } from 'lru-cache'
import { type LmcacheClient, LmcacheFault, type LmcacheInstance } from './lmcache-client.ts'

/** Which LMCache server serves which engine. */
export interface Instances {
  /** Undefined: none is known for the pod, or it has not registered with the coordinator. @throws LmcacheFault */
  of(pod: string, signal: AbortSignal): Promise<LmcacheInstance | undefined>
  /** Tokens of one chunk: all instances of a fleet are set alike. @throws LmcacheFault */
  chunkTokens(signal: AbortSignal): Promise<number>
  /** All that are registered now. @throws LmcacheFault */
  all(signal: AbortSignal): Promise<readonly LmcacheInstance[]>
}

const maxAgeMs = 2_000
const chunkSizeMaxAgeMs = 60_000

/** `nameOf` gives a pod's instance id; a pod without one belongs to the only instance on its own address. */
export const createInstances = (
  client: Pick<LmcacheClient, 'instances' | 'chunkTokens'>,
  nameOf: (pod: string) => string | undefined,
): Instances => {
  const cache = new LRUCache<'all', readonly LmcacheInstance[]>({ max: 1, ttl: maxAgeMs, ttlResolution: 0 })
  const chunkSize = new LRUCache<'all', number>({ max: 1, ttl: chunkSizeMaxAgeMs, ttlResolution: 0 })
  const all = async (signal: AbortSignal): Promise<readonly LmcacheInstance[]> => {
    const known = cache.get('all')
    if (known !== undefined) return known
    const asked = await client.instances(signal)
    cache.set('all', asked)
    return asked
  }
  return {
    all: (signal) => client.instances(signal),
    chunkTokens: async (signal) => {
      const known = chunkSize.get('all')
      if (known !== undefined) return known
      const [first] = await all(signal)
      if (first === undefined) throw new LmcacheFault('no instance is registered with the coordinator')
      const asked = await client.chunkTokens(first.address, signal)
      chunkSize.set('all', asked)
      return asked
    },
    of: async (pod, signal) => {
      const instances = await all(signal)
      const name = nameOf(pod)
      if (name !== undefined) return instances.find(({ id }) => id === name)
      const host = pod.slice(0, pod.lastIndexOf(':')).replace(/^\[|\]$/g, '')
      const local = instances.filter(({ ip }) => ip === host)
      return local.length === 1 ? local[0] : undefined
    },
  }
}
