import { createCacheSalts, type Isolation, lifeOf } from './cache-salts.ts'
import type { EngineFields, KvConnector } from './kv-connector.ts'

export interface PrefixCacheOptions {
  readonly isolation: Isolation
  /** Salts are derived from it: the tenant secret. */
  readonly secret: string
  /** Selects the members of a request body that get the salt. */
  readonly engine: keyof typeof saltFieldsOf
  /** These members instead. The engine must keep KV of different values apart. */
  readonly saltFields?: readonly string[] | undefined
}

/** SGLang joins both members into one key, so that a client's own `extra_key` must not stay. */
const saltFieldsOf = { vllm: ['cache_salt'], sglang: ['cache_salt', 'extra_key'] } as const

/**
 * For OpenAI engines with a prefix cache of their own that takes salts. The gateway keeps tenants apart and routes; what the engine still holds is
 * the engine's to know, so no hit is promised. KV of an ended session becomes unreachable with its salt, and leaves by the engine's own LRU.
 */
export const createPrefixCacheConnector = (options: PrefixCacheOptions): KvConnector => {
  const { isolation, saltFields = saltFieldsOf[options.engine] } = options
  const salts = createCacheSalts(options.secret)
  const fieldsOf = (salt: string): EngineFields => Object.fromEntries(saltFields.map((name) => [name, salt]))
  return {
    name: 'prefix-cache',
    prepare: async (turn) => {
      const { tenant, model } = turn
      const session = isolation === 'session' ? { key: turn.session, life: lifeOf(turn, undefined) } : undefined
      return {
        presence: { kind: 'miss', reason: 'engine_cache' },
        fields: fieldsOf(salts.of({ tenant, session, model, fingerprint: '' })),
        notStored: 'engine_cache',
      }
    },
    isolation: (tenant) => fieldsOf(salts.withoutSession(tenant, isolation)),
  }
}
