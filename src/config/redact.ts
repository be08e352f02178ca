import type { Config } from './config.ts'
import { type ConfigOption, listConfigOptions } from './options.ts'

const redacted = '[redacted]'

/** The configuration for operators: options that the schema marks as secret are redacted. */
export const redactConfig = (config: Config): unknown => {
  const secrets = new Map(
    listConfigOptions().flatMap(({ path, secret }) => (secret === undefined ? [] : [[path.join('.'), secret]])),
  )
  const redact = (value: unknown, path: string): unknown => {
    const secret = secrets.get(path)
    if (secret !== undefined && value !== undefined) return redactSecret(value, secret)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, child]) => [name, redact(child, path === '' ? name : `${path}.${name}`)]),
    )
  }
  return redact(config, '')
}

const redactSecret = (value: unknown, secret: NonNullable<ConfigOption['secret']>): string => {
  switch (secret) {
    case 'whole':
      return redacted
    case 'url':
      return redactUrl(String(value))
  }
}

/** Keeps protocol, host and path. Credentials stand before the host or in the query. */
const redactUrl = (url: string): string => {
  const { protocol, username, password, host, pathname } = new URL(url)
  const credentials = username === '' && password === '' ? '' : `${redacted}@`
  return `${protocol}//${credentials}${host}${pathname}`
}
