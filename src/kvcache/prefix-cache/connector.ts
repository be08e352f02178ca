import { z } from 'zod'
import { group } from '../../options/values.ts'
import { lifeOf } from '../cache-salts.ts'
import { type ConnectorOptions, type ConnectorParts, defineConnector } from '../connector-definition.ts'
import type { EngineFields, KvConnector } from '../kv-connector.ts'

/** SGLang joins both members into one key, so that a client's own `extra_key` must not stay. */
const saltFieldsOf = { vllm: ['cache_salt'], sglang: ['cache_salt', 'extra_key'] } as const

const options = {
  prefixCache: group({
    engine: z
      .enum(['vllm', 'sglang'])
      .default('vllm')
      .describe('Engine whose salt fields `prefix-cache` sets: `cache_salt`, and with `sglang` also `extra_key`.'),
    saltFields: z
      .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'must be the name of a body member'))
      .min(1)
      .optional()
      .meta({
        description:
          'Members of a request body that `prefix-cache` sets to the salt, for another engine. They must keep KV of different values apart.',
        defaultText: 'by `kv.prefixCache.engine`',
      }),
  }),
}

/**
 * For OpenAI engines whose prefix cache takes salts. The gateway keeps tenants apart and routes; only the engine knows
 * what it holds, so no hit is promised. KV of an ended session is unreachable, and leaves by the engine's own LRU.
 */
export const createPrefixCacheConnector = (
  {
    isolation,
    prefixCache,
    modelVersion = '',
  }: Pick<ConnectorOptions<typeof options>, 'isolation' | 'prefixCache' | 'modelVersion'>,
  { salts }: Pick<ConnectorParts, 'salts'>,
): KvConnector => {
  const { saltFields = saltFieldsOf[prefixCache.engine] } = prefixCache
  const fieldsOf = (salt: string): EngineFields => Object.fromEntries(saltFields.map((name) => [name, salt]))
  return {
    prepare: async (turn) => {
      const { tenant, model } = turn
      const session = isolation === 'session' ? { key: turn.session, life: lifeOf(turn, undefined) } : undefined
      return {
        presence: { kind: 'miss', reason: 'engine_cache' },
        fields: fieldsOf(salts.of({ tenant, session, model, fingerprint: modelVersion })),
        notStored: 'engine_cache',
      }
    },
    isolation: (tenant) => fieldsOf(salts.withoutSession(tenant, isolation)),
  }
}

export const prefixCache = defineConnector({
  name: 'prefix-cache',
  summary: 'the engine’s own prefix cache, kept apart by salts',
  options,
  create: createPrefixCacheConnector,
})
