import { z } from 'zod'
import { createEngineHttp } from '../../engines/engine-http.ts'
import { group, integer, podAlias, serverUrl } from '../../options/values.ts'
import { createMemoryChunkLedger } from '../chunks/chunk-ledger.ts'
import { createRedisChunkLedger } from '../chunks/redis/redis-chunk-ledger.ts'
import { type ConnectorOptions, type ConnectorParts, defineConnector, required } from '../connector-definition.ts'
import type { KvConnector } from '../kv-connector.ts'
import { createEventSources } from '../kv-events/event-sources.ts'
import { createKvEvents } from '../kv-events/kv-events.ts'
import { createEngineFacts } from './engine-facts.ts'
import { finish } from './finish.ts'
import { createInstances } from './instances.ts'
import { createLmcacheClient, maxAnswerBytes } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { fieldsOfLife, prepare } from './prepare.ts'
import { release, remove } from './remove.ts'
import { createStoreBreaker } from './store-breaker.ts'

const options = {
  lmcache: group({
    url: serverUrl.optional().meta({
      description: 'URL of the LMCache coordinator. Required with `lmcache`.',
      plainEnv: 'LMCACHE_URL',
    }),
    instances: z.array(podAlias).default([]).meta({
      description:
        'LMCache instances of pods, as `ip:port=instance-id`. Needed where several LMCache servers share an IP address.',
      plainEnv: 'LMCACHE_INSTANCES',
    }),
    worldSize: integer(1, 1_024)
      .default(1)
      .describe('Workers per model: tensor parallel size times pipeline parallel size.'),
  }),
}

const callsPerServer = 32

/**
 * KV of vLLM pods with LMCacheMPConnector and an LMCache server each, under one coordinator. The engine writes KV
 * through to the store and loads it; the connector names what a turn left, says what a pod can load, and deletes it.
 * `own`: parts other than those that the options select.
 */
export const createLmcacheConnector = (
  { lmcache: { url, instances, worldSize }, ...kv }: Omit<ConnectorOptions<typeof options>, 'directory'>,
  pool: ConnectorParts,
  own: Partial<Pick<Parts, 'ledger' | 'events' | 'answerMs' | 'settleMs' | 'lookAgainMs'>> = {},
): Omit<Required<KvConnector>, 'sweep' | 'constants'> => {
  const { redis, salts, warnings } = pool
  const named = (pod: string) => instances.find((alias) => alias.startsWith(`${pod}=`))?.slice(pod.length + 1)
  const http = createEngineHttp({ callsPerPod: callsPerServer, maxAnswerBytes })
  const coordinator = new URL(required(url)).host
  const lmcache = createLmcacheClient({ http, coordinator, worldSize })
  const parts: Parts = {
    ...pool,
    ...kv,
    lmcache,
    breaker: createStoreBreaker((signal) => lmcache.healthy(signal), { address: coordinator, warnings }),
    instances: createInstances(lmcache, (pod) => named(pod) ?? pool.instanceOf(pod)),
    engines: createEngineFacts(pool.http, kv.callTimeoutMs, kv),
    ledger: redis === undefined ? createMemoryChunkLedger() : createRedisChunkLedger(redis),
    answerMs: 1_000,
    settleMs: 2_000,
    lookAgainMs: 300,
    ...own,
    events: own.events ?? createKvEvents({ ...pool, sources: createEventSources(pool.http) }),
  }
  return {
    prepare: (turn, { signal }) => prepare(parts, turn, signal),
    isolation: (tenant, turn) =>
      turn === undefined ? { cache_salt: salts.withoutSession(tenant, kv.isolation) } : fieldsOfLife(parts, turn),
    finish: (turn) => finish(parts, turn),
    release: (turn) => release(parts, turn),
    remove: (removal, signal) => remove(parts, removal, signal),
    // A turn that ends before its pod's events are received is not stored.
    check: async (pod, signal) => {
      await Promise.all([parts.events.follow(pod, signal), parts.engines.renew(pod, signal)])
      return []
    },
    close: async () => {
      await parts.events.stop()
      await http.close()
    },
  }
}

export const lmcache = defineConnector({
  name: 'lmcache',
  summary: 'LMCache with vLLM',
  options,
  check: ({ lmcache: { url } }) =>
    url === undefined
      ? [{ option: 'lmcache.url', message: 'the connector lmcache needs the URL of the LMCache coordinator' }]
      : [],
  create: (kv, pool) => createLmcacheConnector(kv, pool),
})
