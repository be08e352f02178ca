import type { Config } from './config.ts'

const redacted = '[redacted]'

/** The configuration for operators, without secrets: tenant secret, engine keys, credentials of the Redis URL. */
export const redactConfig = (config: Config): unknown => {
  const { tenant, sessions, engines, pools } = config
  return {
    ...config,
    tenant: { ...tenant, secret: redacted },
    engines: redactKey(engines),
    pools: pools.map(redactKey),
    sessions: sessions.store === 'redis' ? { ...sessions, redisUrl: redactUrl(sessions.redisUrl) } : sessions,
  }
}

const redactKey = <T extends { readonly apiKey?: string | undefined }>(options: T): T =>
  options.apiKey === undefined ? options : { ...options, apiKey: redacted }

/** Keeps protocol, host and path. Credentials stand before the host or in the query. */
const redactUrl = (url: string): string => {
  const { protocol, username, password, host, pathname } = new URL(url)
  const credentials = username === '' && password === '' ? '' : `${redacted}@`
  return `${protocol}//${credentials}${host}${pathname}`
}
