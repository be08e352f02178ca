import { expect, jest, test } from '@jest/globals'
import { createServerHealth } from '../../../src/redis/server-health.ts'

test('a server recovers when it has refused nothing for five seconds, not at its next answer', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0)
  const seen: unknown[] = []
  const health = createServerHealth({
    commandTimeoutMs: 10_000,
    onRecovered: () => void seen.push('recovered'),
    onBreaker: () => {},
  })
  const full = Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' })
  const refused = health.run(
    'set',
    () => Promise.reject(full),
    () => true,
  )
  await expect(refused).rejects.toThrow('Redis refused set')

  for (const nowMs of [1, 4_999, 5_000]) {
    clock.mockReturnValue(nowMs)
    await health.run(
      'get',
      async () => 'answer',
      () => true,
    )
    seen.push(health.isFaulty())
  }
  clock.mockRestore()
  expect(seen).toEqual([true, true, 'recovered', false])
})
