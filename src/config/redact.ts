import { urlsOfHosts } from '../options/redis-url.ts'
import type { Config } from './config.ts'
import { isTree } from './config-tree.ts'
import { schemaAt } from './options.ts'

const redacted = '[redacted]'

/** The configuration for operators, without what the schema marks as `secret`. */
export const redactConfig = (config: Config): unknown => redactAt([], config)

const redactAt = (path: readonly string[], value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((item, index) => redactAt([...path, `${index}`], item))
  if (isTree(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redactAt([...path, name], member)]))
  const secret = value === undefined ? undefined : schemaAt(path)?.secret
  if (secret === undefined) return value
  return secret === 'credentials' ? redactUrl(String(value)) : redacted
}

/** Keeps protocol, hosts and path. Credentials stand before the first host or in the query. */
const redactUrl = (text: string): string => {
  const urls = urlsOfHosts(text).map((url) => new URL(url))
  const [{ protocol, username, password, pathname } = new URL(text)] = urls
  const credentials = username === '' && password === '' ? '' : `${redacted}@`
  return `${protocol}//${credentials}${urls.map(({ host }) => host).join(',')}${pathname}`
}
