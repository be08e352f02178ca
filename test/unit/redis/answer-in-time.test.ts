import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { AnswerLateError, answerInTime } from '../../../src/redis/answer-in-time.ts'

const limitMs = 20

/** Keeps this thread, and nothing else, from going on. */
const beBusy = (milliseconds: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

describe('an answer', () => {
  test('is passed on', async () => {
    expect(await answerInTime(Promise.resolve('answer'), limitMs)).toBe('answer')
  })

  test('may be a failure', async () => {
    await expect(answerInTime(Promise.reject(new Error('refused')), limitMs)).rejects.toThrow('refused')
  })

  test('is late when nothing comes', async () => {
    await expect(answerInTime(new Promise(() => undefined), limitMs)).rejects.toBeInstanceOf(AnswerLateError)
  })

  test('is in time when it was there while the process was busy', async () => {
    // From here the event loop comes to its timers before it looks for answers.
    await new Promise((resolve) => setImmediate(resolve))
    // Made by another thread; this one hears of it by its event loop, as of bytes in a socket.
    const answer = answerInTime(promisify(randomBytes)(8), limitMs)
    beBusy(10 * limitMs)

    expect(await answer).toHaveLength(8)
  })
})
