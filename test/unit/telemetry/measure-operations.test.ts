import { describe, expect, test } from '@jest/globals'
import { type EndedOperation, measureOperations } from '../../../src/telemetry/measure-operations.ts'
import { createLatch } from '../../support/latch.ts'

const createStore = () => {
  const records = new Map([['a', 1]])
  return {
    name: 'store',
    get: async (key: string): Promise<number | undefined> => records.get(key),
    put: async (): Promise<void> => {
      throw new Error('full')
    },
  }
}

describe('measureOperations', () => {
  test('a call returns the result of the target and is reported when it has ended', async () => {
    const ended: EndedOperation[] = []
    const store = measureOperations(createStore(), (operation) => void ended.push(operation))
    expect(store.name).toBe('store')
    expect(await store.get('a')).toBe(1)
    await expect(store.put()).rejects.toThrow('full')
    expect(ended).toEqual([
      { op: 'get', durationMs: expect.any(Number), failed: false },
      { op: 'put', durationMs: expect.any(Number), failed: true },
    ])
  })

  test('a call is reported only after its promise has settled', async () => {
    const ended: EndedOperation[] = []
    const latch = createLatch()
    const working = measureOperations({ work: () => latch.opened }, (operation) => void ended.push(operation)).work()
    expect(ended).toEqual([])
    latch.open()
    await working
    expect(ended).toHaveLength(1)
  })
})
