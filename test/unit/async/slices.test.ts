import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { createSlices, type SlicedWork } from '../../../src/async/slices.ts'

/** Work of so many slices that notes each one. */
function* work(name: string, slices: number, notes: string[]): SlicedWork<string> {
  for (let slice = 1; slice <= slices; slice += 1) {
    notes.push(`${name}${slice}`)
    if (slice < slices) yield
  }
  return name
}

describe('slices', () => {
  test('the first one is done at once', async () => {
    const notes: string[] = []

    const result = createSlices().run(work('a', 1, notes))

    expect(notes).toEqual(['a1'])
    await expect(result).resolves.toBe('a')
  })

  test('all others are done one in a turn of the event loop, in turn for each work', async () => {
    const notes: string[] = []
    const slices = createSlices()
    const all = Promise.all(['a', 'b', 'c'].map((name) => slices.run(work(name, 3, notes))))
    const short = slices.run(work('d', 1, notes))
    const turns: string[][] = []
    for (let turn = 0; turn < 7; turn += 1) {
      turns.push(notes.splice(0))
      await nextTurn()
    }

    expect(turns).toEqual([['a1', 'b1', 'c1', 'd1'], ['a2'], ['b2'], ['c2'], ['a3'], ['b3'], ['c3']])
    await expect(all).resolves.toEqual(['a', 'b', 'c'])
    await expect(short).resolves.toBe('d')
  })

  test('work that throws rejects, and so does work whose signal fires, with its reason', async () => {
    const notes: string[] = []
    const slices = createSlices()
    const controller = new AbortController()
    const reason = new Error('the client left')
    function* failing(): SlicedWork<never> {
      yield
      throw new Error('it failed')
    }
    const outcomes = Promise.allSettled([
      slices.run(work('a', 3, notes), controller.signal),
      slices.run(failing()),
      slices.run(work('b', 2, notes)),
    ])

    controller.abort(reason)

    expect(
      (await outcomes).map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
    ).toEqual(['the client left', 'it failed', 'b'])
    expect(notes).toEqual(['a1', 'b1', 'b2'])
  })
})
