import type { DeepReadonly } from '../options/deep-readonly.ts'
import type { RedisLocation, RedisTlsFiles } from '../options/redis-location.ts'
import type { ParsedConfig } from './schema.ts'

type Sessions = DeepReadonly<ParsedConfig['sessions']>

/** Options that name a Redis, each another kind of it. */
export const redisOptions = ['redisUrl', 'redisCluster', 'redisSentinels'] as const satisfies (keyof Sessions)[]

/** The Redis of the sessions: the options that say where it is. */
export type RedisChoice = { readonly redisTls?: RedisTlsFiles | undefined } & (
  | { readonly redisUrl: string }
  | { readonly redisCluster: string }
  | {
      readonly redisSentinels: string
      readonly redisSentinelMaster: string
      readonly redisSentinelPassword?: string | undefined
    }
)

/** Undefined: no Redis is given. */
export const redisChoiceOf = ({
  redisUrl,
  redisCluster,
  redisSentinels,
  redisSentinelMaster = '',
  redisSentinelPassword,
  redisTls,
}: Sessions): RedisChoice | undefined => {
  if (redisUrl !== undefined) return { redisUrl, redisTls }
  if (redisCluster !== undefined) return { redisCluster, redisTls }
  if (redisSentinels !== undefined) return { redisSentinels, redisSentinelMaster, redisSentinelPassword, redisTls }
  return undefined
}

/** The store that the options choose: a Redis without `store` selects it. */
export const storeOf = (sessions: Sessions): 'memory' | 'redis' =>
  sessions.store ?? (redisChoiceOf(sessions) === undefined ? 'memory' : 'redis')

/** What a connection needs to know. */
export const redisLocationOf = (choice: RedisChoice): RedisLocation => {
  const tls = choice.redisTls
  if ('redisUrl' in choice) return { url: choice.redisUrl, tls }
  if ('redisCluster' in choice) return { url: choice.redisCluster, topology: { kind: 'cluster' }, tls }
  const { redisSentinels: url, redisSentinelMaster: master, redisSentinelPassword: sentinelPassword } = choice
  return { url, topology: { kind: 'sentinels', master, sentinelPassword }, tls }
}
