import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { RedisSilentError } from '../../../src/redis/redis-fault.ts'
import { withinTime } from '../../../src/redis/time-limit.ts'
import { createLatch } from '../../support/latch.ts'

const neverMs = 600_000

describe('the time limit of a call', () => {
  test('passes on an answer and a failure', async () => {
    await expect(withinTime(Promise.resolve('answer'), neverMs)).resolves.toBe('answer')
    await expect(withinTime(Promise.reject(new Error('refused')), neverMs)).rejects.toThrow('refused')
  })

  test('reports an answer that comes after the limit', async () => {
    const answer = createLatch()
    const late = createLatch()
    await expect(withinTime(answer.opened, 1, late.open)).rejects.toBeInstanceOf(RedisSilentError)
    answer.open()
    await expect(late.opened).resolves.toBeUndefined()
  })
})

describe('the time limit of a call of a process that is busy for longer', () => {
  /** Keeps this thread, and nothing else, from going on. */
  const beBusy = (milliseconds: number): void => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
  }

  /** Made by another thread; this one receives it through its event loop, as it does bytes in a socket. */
  const fromOutside = (): Promise<Buffer> => promisify(randomBytes)(8)

  const nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  test('holds for the answer that came meanwhile, and for one that came while that was handled', async () => {
    // From here the event loop runs its timers before it looks for answers.
    await nextRound()
    const first = withinTime(fromOutside(), 20)
    beBusy(500)
    expect(await first).toHaveLength(8)
    const second = withinTime(fromOutside(), 20)
    beBusy(500)
    expect(await second).toHaveLength(8)
  })
})
