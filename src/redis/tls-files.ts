import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import type { RedisTlsFiles } from '../options/redis-location.ts'

/**
 * Options of TLS whose files are read when a connection is opened: ioredis copies them each time. A file that cannot be
 * read then counts as unchanged, since ioredis gives a connection up for good whose options throw.
 * @throws Error when a file cannot be read now
 */
export const readTlsFiles = (files: RedisTlsFiles = {}): ConnectionOptions => {
  const [ca, cert, key] = [reading(files.ca), reading(files.certificate), reading(files.key)]
  return {
    get ca() {
      return ca()
    },
    get cert() {
      return cert()
    },
    get key() {
      return key()
    },
  }
}

const reading = (file: string | undefined): (() => string | undefined) => {
  if (file === undefined) return () => undefined
  let last = readFileSync(file, 'utf8')
  return () => {
    try {
      last = readFileSync(file, 'utf8')
    } catch {}
    return last
  }
}
