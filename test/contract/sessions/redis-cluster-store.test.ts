import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { clusterUnderTest } from './age-redis-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { testOptions } from './store-under-test.ts'

const cluster = useTestRedisCluster({ replicas: 0 })

const onCorrupted = (): never => {
  throw new Error('The store cannot read a record of its own')
}
describeSessionStore('the Redis session store in a cluster', (tenantLimits) =>
  clusterUnderTest(cluster(), { ...testOptions, partitions: 8, tenantLimits, onCorrupted }),
)
