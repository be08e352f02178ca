import type { DeepReadonly } from '../options/deep-readonly.ts'
import { type RedisChoice, redisChoiceOf, storeOf } from './redis-choice.ts'
import { noNames, type ParsedConfig } from './schema.ts'

/** The store of the sessions. */
type StoreChoice =
  /** `ignoresRedis`: a Redis is given, too. */
  { readonly store: 'memory'; readonly ignoresRedis: boolean } | ({ readonly store: 'redis' } & RedisChoice)

/** The effective configuration: complete, checked, frozen. */
export type Config = DeepReadonly<Omit<ParsedConfig, 'tenant' | 'sessions'>> & {
  readonly tenant: DeepReadonly<Omit<ParsedConfig['tenant'], 'secret' | 'secretFile' | 'previousSecretFile'>> & {
    readonly secret: string
  }
  readonly sessions: DeepReadonly<Omit<ParsedConfig['sessions'], 'store' | `redis${string}`>> & StoreChoice
}

/** Fills in defaults that depend on other options, and freezes everything. `parsed` has passed `checkAcrossOptions`. */
export const completeConfig = (parsed: ParsedConfig, options: { readonly generateSecret: () => string }): Config => {
  const {
    secret = options.generateSecret(),
    secretFile: _file,
    previousSecretFile: _previousFile,
    ...tenant
  } = parsed.tenant
  const {
    store: _store,
    redisUrl: _redisUrl,
    redisUrlFile: _redisUrlFile,
    redisCluster: _redisCluster,
    redisClusterFile: _redisClusterFile,
    redisSentinels: _redisSentinels,
    redisSentinelsFile: _redisSentinelsFile,
    redisSentinelMaster: _redisSentinelMaster,
    redisSentinelPassword: _redisSentinelPassword,
    redisSentinelPasswordFile: _redisSentinelPasswordFile,
    redisTls: _redisTls,
    implicit,
    ...sessions
  } = parsed.sessions
  const names = implicit.names.filter((name) => name !== noNames)
  const redis = redisChoiceOf(parsed.sessions)
  const choice: StoreChoice =
    redis !== undefined && storeOf(parsed.sessions) === 'redis'
      ? { store: 'redis', ...redis }
      : { store: 'memory', ignoresRedis: redis !== undefined }
  return deepFreeze({
    ...parsed,
    tenant: { ...tenant, secret },
    sessions: {
      ...sessions,
      ...choice,
      implicit: { ...implicit, names, ttlSeconds: Math.min(implicit.ttlSeconds, sessions.maxTtlSeconds) },
    },
  })
}

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze)
  return Object.freeze(value)
}
