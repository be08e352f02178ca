import { expect, test } from '@jest/globals'
import { known, unknown } from '../../../src/commands/doctor/known.ts'
import { askFullCoverage } from '../../../src/commands/doctor/redis-coverage.ts'
import { documentedRights } from '../../support/documented-rights.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'

const cluster = useTestRedisCluster({ primaries: 2, replicas: 0 })
const topology = { kind: 'cluster' } as const

test('doctor sees which nodes of a cluster need all slots', async () => {
  const { url, nodes } = cluster()
  expect(await askFullCoverage({ url, topology })).toEqual(known([]))
  await nodes[1]?.raw.config('SET', 'cluster-require-full-coverage', 'yes')
  expect(await askFullCoverage({ url, topology })).toEqual(known([`127.0.0.1:${nodes[1]?.port}`]))
})

test('doctor says what an administrator can ask, where the user of the gateway may not', async () => {
  const { url, nodes } = cluster()
  for (const { raw } of nodes) await raw.acl('SETUSER', 'gateway', 'reset', ...documentedRights())
  const asked = await askFullCoverage({ url: url.replace('//', '//gateway:password@'), topology })
  expect(asked).toEqual(
    unknown(
      'the user of the gateway may not run CONFIG: CONFIG GET cluster-require-full-coverage as an administrator should say no',
    ),
  )
})

test('doctor says why nodes do not answer, without the password', async () => {
  const asked = await askFullCoverage({ url: 'redis://gateway:secret@127.0.0.1:1', topology })
  expect(asked).toEqual(unknown('Redis cannot be asked: connect ECONNREFUSED 127.0.0.1:1'))
})
