import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { AnswerLateError, createAnswerWatch } from '../../../src/redis/answer-watch.ts'

const limitMs = 100
const silenceMs = 1000

/** A call whose answer the test gives, and what came of it: undefined while it waits. */
const openCall = (watch: ReturnType<typeof createAnswerWatch>) => {
  let answer = (_text: string): void => {}
  let refuse = (_error: Error): void => {}
  const outcome: { settled: unknown } = { settled: undefined }
  const asked = new Promise<string>((resolve, reject) => {
    answer = resolve
    refuse = reject
  })
  watch(asked, asItIs).then(
    (text) => {
      outcome.settled = text
    },
    (error: unknown) => {
      outcome.settled = error
    },
  )
  return { answer, refuse, outcome }
}

const late = expect.any(AnswerLateError)
const asItIs = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

describe('the watch of a connection', () => {
  let silences: number
  const onSilence = (): void => {
    silences += 1
  }

  const openWatch = () => createAnswerWatch({ limitMs, silenceMs, onSilence })
  const advance = (milliseconds: number): Promise<void> => jest.advanceTimersByTimeAsync(milliseconds)
  /** Further than to when something is due: a timer's look comes one round of the event loop after it. */
  const advanceBeyond = (milliseconds: number): Promise<void> => advance(milliseconds + 1)

  beforeEach(() => {
    silences = 0
    jest.useFakeTimers()
  })

  afterEach(() => {
    jest.useRealTimers()
  })

  test('passes answers and failures on', async () => {
    const watch = openWatch()
    const [well, ill] = [openCall(watch), openCall(watch)]
    well.answer('answer')
    ill.refuse(new Error('refused'))
    await advance(0)

    expect([well.outcome.settled, ill.outcome.settled]).toEqual(['answer', new Error('refused')])
  })

  test('gives a call up when its limit has passed, and neither before nor one that was asked later', async () => {
    const watch = openWatch()
    const first = openCall(watch)
    await advance(60)
    const second = openCall(watch)
    await advance(limitMs - 60 - 1)
    expect(first.outcome.settled).toBeUndefined()

    await advanceBeyond(1)
    expect([first.outcome.settled, second.outcome.settled]).toEqual([late, undefined])
    await advanceBeyond(60)
    expect(second.outcome.settled).toEqual(late)
  })

  test.each([
    { name: 'the first', answered: [0] },
    { name: 'one in the middle', answered: [1] },
    { name: 'the last', answered: [2] },
    { name: 'all, backwards', answered: [2, 1, 0] },
    { name: 'none', answered: [] },
  ])('gives up what is left when of three calls is answered: $name', async ({ answered }) => {
    const watch = openWatch()
    const calls = [openCall(watch), openCall(watch), openCall(watch)]
    for (const index of answered) calls[index]?.answer('answer')
    await advanceBeyond(limitMs)

    expect(calls.map(({ outcome }) => outcome.settled)).toEqual(
      calls.map((_, index) => (answered.includes(index) ? 'answer' : late)),
    )
  })

  test('an answer that comes after all changes nothing for a call that was given up', async () => {
    const watch = openWatch()
    const call = openCall(watch)
    await advanceBeyond(limitMs)
    call.answer('late')
    await advance(0)

    expect(call.outcome.settled).toEqual(late)
  })

  test('has one timer, however many calls one after the other are answered, and none once there are no more', async () => {
    const made = jest.spyOn(globalThis, 'setTimeout')
    const cleared = jest.spyOn(globalThis, 'clearTimeout')
    const watch = openWatch()
    for (let call = 0; call < 5 * limitMs; call++) {
      openCall(watch).answer('answer')
      await advance(1)
    }

    expect(made.mock.calls.length).toBeLessThanOrEqual(6)
    expect(cleared).not.toHaveBeenCalled()
    await advanceBeyond(limitMs)
    expect(jest.getTimerCount()).toBe(0)
  })

  test('does not tell of silence as long as answers come, also under load that never pauses', async () => {
    const watch = openWatch()
    let waiting = openCall(watch)
    for (let call = 0; call < 40; call++) {
      const next = openCall(watch)
      await advance(limitMs / 2)
      waiting.answer('answer')
      waiting = next
    }

    expect(silences).toBe(0)
  })

  test('tells once of a silence, also when all its calls were given up long before', async () => {
    const watch = openWatch()
    const answered = openCall(watch)
    await advance(50)
    const silent = [openCall(watch), openCall(watch)]
    answered.answer('answer')
    await advance(silenceMs - 1)
    expect(silences).toBe(0)
    await advanceBeyond(1)
    expect(silences).toBe(1)

    for (const call of silent) call.refuse(new Error('closed'))
    await advanceBeyond(2 * silenceMs)
    expect(silences).toBe(1)
    expect(jest.getTimerCount()).toBe(0)
  })

  test('a call has its limit also while another one has been given up', async () => {
    const watch = openWatch()
    openCall(watch)
    await advance(2.5 * limitMs)
    const second = openCall(watch)
    await advanceBeyond(limitMs)

    expect(second.outcome.settled).toEqual(late)
  })

  test('counts silence from when something is asked', async () => {
    const watch = openWatch()
    openCall(watch).answer('answer')
    await advance(10 * silenceMs)
    openCall(watch)
    await advance(silenceMs - 1)
    expect(silences).toBe(0)
    await advanceBeyond(1)
    expect(silences).toBe(1)
  })
})

describe('a process that is busy for longer than the limit', () => {
  /** Keeps this thread, and nothing else, from going on. */
  const beBusy = (milliseconds: number): void => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
  }

  /** Made by another thread; this one hears of it by its event loop, as of bytes in a socket. */
  const fromOutside = (): Promise<Buffer> => promisify(randomBytes)(8)

  const nextRound = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  let silences: number
  const onSilence = (): void => {
    silences += 1
  }

  const openWatch = () => createAnswerWatch({ limitMs: 20, silenceMs: 30, onSilence })

  beforeEach(() => {
    silences = 0
  })

  test('finds the answer that came meanwhile in time, and no silence', async () => {
    const watch = openWatch()
    // From here the event loop comes to its timers before it looks for answers.
    await nextRound()
    const answer = watch(fromOutside(), asItIs)
    beBusy(200)

    expect(await answer).toHaveLength(8)
    expect(silences).toBe(0)
  })

  test('also when it was busy with what it read before it looked', async () => {
    const watch = openWatch()
    await nextRound()
    const first = watch(fromOutside(), asItIs)
    beBusy(200)
    await first
    const second = watch(fromOutside(), asItIs)
    beBusy(200)

    expect(await second).toHaveLength(8)
    expect(silences).toBe(0)
  })
})
