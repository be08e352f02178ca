import { beforeEach, describe, expect, test } from '@jest/globals'
import { createRedisBreaker, type RedisBreakerState } from '../../../src/redis/redis-breaker.ts'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { RedisSilentError } from '../../../src/redis/redis-fault.ts'

const neverMs = 600_000

describe('the circuit breaker', () => {
  let states: RedisBreakerState[]
  let calls: number

  beforeEach(() => {
    states = []
    calls = 0
  })

  const breaker = (halfOpenAfterMs: number) =>
    createRedisBreaker({ openAfter: 3, halfOpenAfterMs, onState: (state) => states.push(state) })

  const failing = (error: Error) => async (): Promise<never> => {
    calls += 1
    throw error
  }
  const silent = failing(new RedisSilentError('silence'))
  const well = async (): Promise<string> => {
    calls += 1
    return 'well'
  }
  const ended = (run: Promise<unknown>): Promise<unknown> => run.catch((error: unknown) => error)

  test.each([
    [
      'one after the other',
      3,
      async (runs: readonly (() => Promise<unknown>)[]) => {
        for (const run of runs) await run()
      },
    ],
    [
      'at the same time',
      10,
      async (runs: readonly (() => Promise<unknown>)[]) => Promise.all(runs.map((run) => run())),
    ],
  ])('opens after three commands in a row without an answer, %s, and then calls nothing', async (_name, count, all) => {
    const guard = breaker(neverMs)
    await all(Array.from({ length: count }, () => () => ended(guard.run(silent))))
    expect(states).toEqual(['open'])

    expect(await ended(guard.run(well))).toBeInstanceOf(RedisUnavailableError)
    expect(calls).toBe(count)
  })

  test('starts to count anew at every answer', async () => {
    const guard = breaker(neverMs)
    for (const command of [silent, silent, well, silent, silent]) await ended(guard.run(command))

    expect(states).toEqual([])
    expect(await guard.run(well)).toBe('well')
  })

  test.each([
    { name: 'refusals', error: new RedisUnavailableError('full') },
    { name: 'mistakes in scripts', error: new RedisScriptError('mistake') },
  ])('does not open for $name, which cost no time', async ({ error }) => {
    const guard = breaker(neverMs)
    for (let call = 0; call < 10; call++) expect(await ended(guard.run(failing(error)))).toBe(error)

    expect(states).toEqual([])
    expect(calls).toBe(10)
  })

  test('lets one command try at once when an answer has come after all', async () => {
    const guard = breaker(neverMs)
    for (let call = 0; call < 3; call++) await ended(guard.run(silent))
    expect(await ended(guard.run(well))).toBeInstanceOf(RedisUnavailableError)

    guard.answeredLate()
    expect(await ended(guard.run(silent))).toBeInstanceOf(RedisSilentError)
    expect(await ended(guard.run(well))).toBeInstanceOf(RedisUnavailableError)
    guard.answeredLate()
    expect(await guard.run(well)).toBe('well')
    expect(states).toEqual(['open', 'half-open', 'open', 'half-open', 'closed'])
  })

  test('lets one command try after a while, while the others fail at once', async () => {
    const guard = breaker(0)
    for (let call = 0; call < 3; call++) await ended(guard.run(silent))
    let answer = (_text: string): void => {}
    const trial = guard.run(
      () =>
        new Promise<string>((resolve) => {
          answer = resolve
        }),
    )
    expect(await ended(guard.run(well))).toBeInstanceOf(RedisUnavailableError)
    expect(calls).toBe(3)
    expect(states).toEqual(['open', 'half-open'])

    answer('back')
    expect(await trial).toBe('back')
    expect(states).toEqual(['open', 'half-open', 'closed'])
    expect(await guard.run(well)).toBe('well')
  })

  test('stays open when commands that began before are answered after all', async () => {
    const guard = breaker(neverMs)
    const answers: ((text: string) => void)[] = []
    const slow = (): Promise<string> => new Promise((resolve) => answers.push(resolve))
    const earlier = guard.run(slow)
    await ended(guard.run(silent))
    const later = guard.run(slow)
    for (let call = 0; call < 2; call++) await ended(guard.run(silent))
    for (const answer of answers) answer('late')

    expect(await Promise.all([earlier, later])).toEqual(['late', 'late'])
    expect(await ended(guard.run(well))).toBeInstanceOf(RedisUnavailableError)
    expect(states).toEqual(['open'])
  })

  test.each([
    ['opens again when the trial gets no answer', silent, 'open'],
    [
      'closes when the trial is refused, since refusals come at once',
      failing(new RedisUnavailableError('full')),
      'closed',
    ],
  ])('%s', async (_name, trial, last) => {
    const guard = breaker(0)
    for (const command of [silent, silent, silent, trial]) await ended(guard.run(command))
    expect(states).toEqual(['open', 'half-open', last])
  })
})
