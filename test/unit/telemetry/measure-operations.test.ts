import { describe, expect, test } from '@jest/globals'
import { type EndedOperation, measureOperations } from '../../../src/telemetry/measure-operations.ts'

class Store {
  readonly name = 'store'
  readonly #records = new Map([['a', 1]])

  async get(key: string): Promise<number | undefined> {
    return this.#records.get(key)
  }

  async put(): Promise<void> {
    throw new Error('full')
  }
}

describe('measureOperations', () => {
  test('calls go through, and each is told when it has ended', async () => {
    const ended: EndedOperation[] = []
    const store = measureOperations(new Store(), (operation) => void ended.push(operation))
    expect(store.name).toBe('store')
    expect(await store.get('a')).toBe(1)
    await expect(store.put()).rejects.toThrow('full')
    expect(ended).toEqual([
      { op: 'get', durationMs: expect.any(Number), failed: false },
      { op: 'put', durationMs: expect.any(Number), failed: true },
    ])
  })

  test('time is taken until the promise settles', async () => {
    const ended: EndedOperation[] = []
    let release = (): void => undefined
    const slow = {
      work: () =>
        new Promise<void>((resolve) => {
          release = resolve
        }),
    }
    const working = measureOperations(slow, (operation) => void ended.push(operation)).work()
    expect(ended).toEqual([])
    release()
    await working
    expect(ended).toHaveLength(1)
  })
})
