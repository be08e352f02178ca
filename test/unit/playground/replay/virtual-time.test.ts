import { describe, expect, test } from '@jest/globals'
import { createVirtualTime } from '../../../../playground/replay/virtual-time.ts'

describe('virtual time', () => {
  test('events happen in the order of time, and of one time in the order of their coming', () => {
    const time = createVirtualTime()
    const seen: string[] = []
    const note = (name: string) => () => void seen.push(`${name} ${time.nowMs()}`)
    time.at(7, note('c'))
    time.at(5, note('a'))
    time.at(5, note('b'))
    time.runUntil(6)
    expect(seen).toEqual(['a 5', 'b 5'])
    expect(time.nowMs()).toBe(6)
    time.runUntil(Number.POSITIVE_INFINITY)
    expect(seen.at(-1)).toBe('c 7')
    expect(time.nowMs()).toBe(7)
  })

  test('what waited for an event goes on before the next one', async () => {
    const time = createVirtualTime()
    const seen: number[] = []
    const work = async (): Promise<void> => {
      await time.sleep(5)
      await Promise.resolve()
      await time.sleep(5)
      seen.push(time.nowMs())
    }
    void work()
    time.at(11, () => void seen.push(time.nowMs()))
    await time.runAll()
    expect(seen).toEqual([10, 11])
  })

  test('a timer that is stopped does not call', async () => {
    const time = createVirtualTime()
    const seen: number[] = []
    const stops = [1, 2].map((delayMs) => time.startTimer(() => seen.push(delayMs), delayMs))
    stops[0]?.()
    await time.runAll()
    expect(seen).toEqual([2])
  })
})
