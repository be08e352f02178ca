import { describe, expect, test } from '@jest/globals'
import { createSharedLoads } from '../../../src/kvcache/shared-loads.ts'

/** A load that a test ends. */
const startLoad = () => {
  let end = (_value: string): void => {}
  let fail = (_fault: Error): void => {}
  let starts = 0
  const promise = new Promise<string>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  const load = (): Promise<string> => {
    starts += 1
    return promise
  }
  return { load, starts: () => starts, end: (value: string) => end(value), fail: (fault: Error) => fail(fault) }
}

const patient = () => ({ signal: new AbortController().signal, onAbort: () => 'left' })

describe('shared loads', () => {
  test('turns share a load that runs', async () => {
    const loads = createSharedLoads<string>()
    const { load, starts, end } = startLoad()
    const waiting = Array.from({ length: 20 }, () => loads.run('name', load, patient()))
    end('done')
    expect(await Promise.all(waiting)).toEqual(Array(20).fill('done'))
    expect(starts()).toBe(1)
  })

  test('other names have loads of their own', async () => {
    const loads = createSharedLoads<string>()
    const [one, other] = [startLoad(), startLoad()]
    const waiting = [loads.run('one', one.load, patient()), loads.run('other', other.load, patient())]
    one.end('one')
    other.end('other')
    expect(await Promise.all(waiting)).toEqual(['one', 'other'])
  })

  test('a turn leaves after its abort, and the load continues for the next one', async () => {
    const loads = createSharedLoads<string>()
    const { load, starts, end } = startLoad()
    const leave = new AbortController()
    const leaving = loads.run('name', load, { signal: leave.signal, onAbort: () => 'left' })
    leave.abort()
    expect(await leaving).toBe('left')
    const next = loads.run('name', load, patient())
    end('done')
    expect([await next, starts()]).toEqual(['done', 1])
  })

  test('a load that has ended is not reused', async () => {
    const loads = createSharedLoads<string>()
    const [first, second] = [startLoad(), startLoad()]
    first.end('first')
    second.end('second')
    expect(await loads.run('name', first.load, patient())).toBe('first')
    expect(await loads.run('name', second.load, patient())).toBe('second')
  })

  test('a failed load rejects for the turns that still wait', async () => {
    const loads = createSharedLoads<string>()
    const { load, fail } = startLoad()
    const waiting = loads.run('name', load, patient())
    const left = loads.run('name', load, { signal: AbortSignal.abort(), onAbort: () => 'left' })
    fail(new Error('the store is away'))
    await expect(waiting).rejects.toThrow('the store is away')
    expect(await left).toBe('left')
  })
})
