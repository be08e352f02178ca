// A thread that pings a Redis, and says when it was late.
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { Redis } from 'ioredis'
import type { PingerData, RedisStall } from './redis-stalls.ts'

const pauseMs = 20
const retryMs = 50

const { url, lateMs }: PingerData = workerData
const redis = new Redis(url, { enableOfflineQueue: false, retryStrategy: () => retryMs })
redis.on('error', () => {})

while (true) {
  const fromMs = performance.now()
  await redis.ping().catch(() => undefined)
  const stall: RedisStall = { fromMs: performance.timeOrigin + fromMs, ms: performance.now() - fromMs }
  if (stall.ms >= lateMs) parentPort?.postMessage(stall)
  await delay(pauseMs)
}
