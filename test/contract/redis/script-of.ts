import { hash } from 'node:crypto'
import type { RedisScript } from '../../../src/redis/redis-connection.ts'

/** A script of a test. */
export const scriptOf = (name: string, source: string): RedisScript => ({ name, source, digest: hash('sha1', source) })
