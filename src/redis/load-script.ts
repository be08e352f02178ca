import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { RedisScript } from './redis-connection.ts'

const includeLine = /^--- @include ([a-z-]+)$/gm

/**
 * Reads `<name>.lua` from `directory` (its URL ends in a slash). A line `--- @include <part>` is replaced by
 * `includes/<part>.lua` there, which may include further parts; each part is taken in once, where it is named first.
 * @throws Error when a file is missing: at start, not while serving.
 */
export const loadScript = (directory: URL, name: string): RedisScript => {
  const taken = new Set<string>()
  const expand = (file: string): string =>
    readFileSync(new URL(file, directory), 'utf8').replace(includeLine, (_line, part: string) => {
      if (taken.has(part)) return ''
      taken.add(part)
      return expand(`includes/${part}.lua`)
    })
  const source = expand(`${name}.lua`)
  return { name, source, digest: hash('sha1', source) }
}
