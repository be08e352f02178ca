import type { DeepReadonly } from '../options/deep-readonly.ts'
import { noNames, type ParsedConfig } from './schema.ts'

/** The store of the sessions. */
type StoreChoice =
  /** `ignoresRedis`: the URL of a Redis is given, too. */
  { readonly store: 'memory'; readonly ignoresRedis: boolean } | { readonly store: 'redis'; readonly redisUrl: string }

/** The effective configuration: complete, checked, frozen. */
export type Config = DeepReadonly<Omit<ParsedConfig, 'tenant' | 'sessions'>> & {
  readonly tenant: DeepReadonly<Omit<ParsedConfig['tenant'], 'secret' | 'secretFile' | 'previousSecretFile'>> & {
    readonly secret: string
  }
  readonly sessions: DeepReadonly<Omit<ParsedConfig['sessions'], 'store' | 'redisUrl' | 'redisUrlFile'>> & StoreChoice
}

/** Fills in defaults that depend on other options, and freezes everything. `parsed` has passed `checkAcrossOptions`. */
export const completeConfig = (parsed: ParsedConfig, options: { readonly generateSecret: () => string }): Config => {
  const {
    secret = options.generateSecret(),
    secretFile: _file,
    previousSecretFile: _previousFile,
    ...tenant
  } = parsed.tenant
  const { store, redisUrl, redisUrlFile: _redisUrlFile, implicit, ...sessions } = parsed.sessions
  const names = implicit.names.filter((name) => name !== noNames)
  const choice: StoreChoice =
    redisUrl !== undefined && storeOf({ store, redisUrl }) === 'redis'
      ? { store: 'redis', redisUrl }
      : { store: 'memory', ignoresRedis: redisUrl !== undefined }
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

/** A URL without `store` selects Redis. */
export const storeOf = (sessions: Pick<ParsedConfig['sessions'], 'store' | 'redisUrl'>): 'memory' | 'redis' =>
  sessions.store ?? (sessions.redisUrl === undefined ? 'memory' : 'redis')

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze)
  return Object.freeze(value)
}
