import { afterAll, beforeAll } from '@jest/globals'
import { startTestRedis, type TestRedis } from './test-redis.ts'

/** Starts a Redis server for all tests of the file or of the `describe` around it, and ends it after them. */
export const useTestRedis = (): (() => TestRedis) => {
  let redis: TestRedis | undefined
  beforeAll(async () => {
    redis = await startTestRedis()
  }, 300_000)
  afterAll(() => redis?.close())
  return () => {
    if (redis === undefined) throw new Error('Redis runs only while tests do')
    return redis
  }
}
