import { Worker } from 'node:worker_threads'
import type { Ledger } from './ledger.ts'

export interface PingerData {
  readonly url: string
  readonly lateMs: number
}

export interface RedisStall {
  /** Since 1970. */
  readonly fromMs: number
  readonly ms: number
}

/** Half of what a gateway waits for: it may have been as late to others before and after. */
const lateMs = 125
/** Until a gateway asks again. */
const recoveryMs = 1_500

/**
 * Notes as a fault whenever Redis let a plain client of another thread wait, which no fault of the soak explains: the machine
 * stalled, and what only Redis knows could not be told.
 */
export const noteRedisStalls = (url: string, ledger: Ledger): Worker => {
  const data: PingerData = { url, lateMs }
  const worker = new Worker(new URL('redis-pinger.ts', import.meta.url), { workerData: data })
  worker.on('message', ({ fromMs, ms }: RedisStall) => {
    const beganMs = fromMs - performance.timeOrigin
    const isExplained = ledger.faults.some(
      (fault) => fault.name.startsWith('Redis') && fault.fromMs <= beganMs + ms && beganMs <= fault.untilMs,
    )
    if (isExplained) return
    const untilMs = beganMs + ms + recoveryMs
    ledger.faults.push({ name: 'Redis late', excuses: ['create', 'manage'], fromMs: beganMs, untilMs })
  })
  return worker
}
