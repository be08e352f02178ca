import { type Check, checkOf, type Problem } from '../finding.ts'

const eviction = checkOf('redis-eviction', 'redis', ({ maxmemoryPolicy, maxmemoryBytes }): readonly Problem[] =>
  maxmemoryPolicy === 'noeviction'
    ? []
    : [
        {
          severity: maxmemoryBytes > 0 ? 'error' : 'warning',
          problem: `maxmemory-policy of Redis is ${maxmemoryPolicy}${maxmemoryBytes > 0 ? `, maxmemory ${maxmemoryBytes}` : ', without maxmemory'}.`,
          why: 'Redis drops sessions when its memory is full: they become misses, and their KV stays as orphans.',
          fix: 'maxmemory-policy noeviction, and maxmemory with room to spare',
        },
      ],
)

export const redisChecks: readonly Check[] = [eviction]
