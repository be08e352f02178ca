import { type Check, checkOf, type Problems } from '../finding.ts'

const eviction = checkOf(
  'redis-eviction',
  'redis',
  ({ maxmemoryPolicy, maxmemoryBytes }): Problems =>
    maxmemoryPolicy === 'noeviction'
      ? []
      : {
          severity: maxmemoryBytes > 0 ? 'error' : 'warning',
          problem: `maxmemory-policy of Redis is ${maxmemoryPolicy}${maxmemoryBytes > 0 ? `, maxmemory ${maxmemoryBytes}` : ', without maxmemory'}.`,
          why: 'Redis drops sessions when its memory is full: they become misses, and their KV stays as orphans.',
          fix: 'maxmemory-policy noeviction, and maxmemory with room to spare',
        },
)

const coverage = checkOf(
  'redis-coverage',
  'fullCoverage',
  (nodes): Problems =>
    nodes.length === 0
      ? []
      : {
          severity: 'warning',
          problem: `cluster-require-full-coverage of Redis ${nodes.join(', ')} is yes.`,
          why: 'When one primary is lost, and until a replica takes over, all refuse commands: every turn is a miss.',
          fix: 'cluster-require-full-coverage no, at every node',
        },
)

export const redisChecks: readonly Check[] = [eviction, coverage]
