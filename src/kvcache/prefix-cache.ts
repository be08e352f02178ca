import { createCacheSalts, type Isolation, lifeOf } from './cache-salts.ts'
import { type EngineField, type KvConnector, settledClaim } from './kv-connector.ts'

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

/** What every session shows as its KV status. */
const status = 'engine_cache'

/**
 * For OpenAI engines with a prefix cache of their own that takes salts. The gateway keeps tenants apart and routes; what the engine still holds is
 * the engine's to know, so no hit is promised. KV of an ended session becomes unreachable with its salt, and leaves by the engine's own LRU.
 */
export const createPrefixCacheConnector = (options: PrefixCacheOptions): KvConnector & { close(): Promise<void> } => {
  const { isolation, saltFields = saltFieldsOf[options.engine] } = options
  const salts = createCacheSalts(options.secret)
  const fieldsOf = (salt: string): Readonly<Record<string, EngineField>> =>
    Object.fromEntries(saltFields.map((name) => [name, salt]))
  return {
    name: 'prefix-cache',
    attach: async (turn) => {
      const { tenant, model, kvStatus } = turn
      const session = isolation === 'session' ? { key: turn.session, life: lifeOf(turn, undefined) } : undefined
      return {
        presence: { kind: 'empty' },
        fields: fieldsOf(salts.of({ tenant, session, model, fingerprint: '' })),
        // Once the session has the status, nothing is left to record.
        claim: kvStatus === status ? settledClaim : '',
      }
    },
    fieldsWithoutSession: (tenant) => fieldsOf(salts.withoutSession(tenant, isolation)),
    offload: async () => ({ kind: 'none', reason: status }),
    detach: async () => {},
    // It stores nothing, so that a payload is another connector's.
    remove: async ({ payload = '' }) => ({ kind: payload === '' ? 'removed' : 'foreign' }),
    reconcile: async () => 0,
    close: async () => {},
  }
}
