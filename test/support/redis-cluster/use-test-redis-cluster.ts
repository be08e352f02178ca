import { afterAll, beforeAll } from '@jest/globals'
import {
  startTestRedisCluster,
  type TestRedisCluster,
  type TestRedisClusterOptions,
} from './start-test-redis-cluster.ts'

/** Starts a Redis Cluster for all tests of the file or of the `describe` around it, and ends it after them. */
export const useTestRedisCluster = (options?: TestRedisClusterOptions): (() => TestRedisCluster) => {
  let cluster: TestRedisCluster | undefined
  beforeAll(async () => {
    cluster = await startTestRedisCluster(options)
  }, 300_000)
  afterAll(() => cluster?.close())
  return () => {
    if (cluster === undefined) throw new Error('the cluster runs only while tests do')
    return cluster
  }
}
