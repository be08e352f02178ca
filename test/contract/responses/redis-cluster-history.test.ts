import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { describeHistory } from './history-suite.ts'
import { clusterHistory } from './history-under-test.ts'

const cluster = useTestRedisCluster({ replicas: 0 })

describeHistory('the history in a Redis Cluster', () => clusterHistory(cluster()))
