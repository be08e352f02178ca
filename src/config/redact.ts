import type { Config } from './config.ts'

const redacted = '[redacted]'

/** The configuration for operators: without the tenant secret and the credentials of the Redis URL, the only options that are secret. */
export const redactConfig = (config: Config): unknown => {
  const { tenant, sessions } = config
  return {
    ...config,
    tenant: { ...tenant, secret: redacted },
    sessions: sessions.store === 'redis' ? { ...sessions, redisUrl: redactUrl(sessions.redisUrl) } : sessions,
  }
}

/** Keeps protocol, host and path. Credentials stand before the host or in the query. */
const redactUrl = (url: string): string => {
  const { protocol, username, password, host, pathname } = new URL(url)
  const credentials = username === '' && password === '' ? '' : `${redacted}@`
  return `${protocol}//${credentials}${host}${pathname}`
}
