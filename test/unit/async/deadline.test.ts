import { describe, expect, test } from '@jest/globals'
import { startDeadline, untilAborted } from '../../../src/async/deadline.ts'

describe('startDeadline', () => {
  test('fires when its time is over', async () => {
    const { signal } = startDeadline(new AbortController().signal, 1)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    expect(signal.reason).toMatchObject({ message: 'no answer within 1 ms' })
  })

  test('fires when the other signal does, or has fired before, for the same reason', () => {
    const controller = new AbortController()
    const deadline = startDeadline(controller.signal, 60_000)
    controller.abort('because')
    const late = startDeadline(controller.signal, 60_000)
    expect([deadline.signal.reason, late.signal.reason]).toEqual(['because', 'because'])
    for (const each of [deadline, late]) each.end()
  })

  test('does not fire after its end', () => {
    const controller = new AbortController()
    const deadline = startDeadline(controller.signal, 60_000)
    deadline.end()
    controller.abort()
    expect(deadline.signal.aborted).toBe(false)
  })
})

describe('untilAborted', () => {
  const never = new Promise<string>(() => {})

  test.each<[string, Promise<string>, AbortSignal, string]>([
    ['the work, if it ends', Promise.resolve('done'), new AbortController().signal, 'done'],
    ['the other value, if the signal has fired before', never, AbortSignal.abort(), 'left'],
    ['the other value, if the signal fires', never, AbortSignal.timeout(1), 'left'],
  ])('resolves to %s', async (_name, work, signal, expected) => {
    expect(await untilAborted(work, signal, () => 'left')).toBe(expected)
  })

  test('rejects as the work does', async () => {
    const work = Promise.reject(new Error('broken'))
    await expect(untilAborted(work, new AbortController().signal, () => 'left')).rejects.toThrow('broken')
  })

  test('rejects as the other value does', async () => {
    const controller = new AbortController()
    const waiting = untilAborted(never, controller.signal, () => controller.signal.throwIfAborted())
    controller.abort(new Error('late'))
    await expect(waiting).rejects.toThrow('late')
  })
})
