import { describe, expect, test } from '@jest/globals'
import { createProcessors } from '../../../../../playground/replay/slots/processors.ts'
import { createVirtualTime } from '../../../../../playground/replay/virtual-time.ts'

/** When pieces of work are done that begin at `startMs`. */
const doneAt = (count: number, works: readonly { readonly startMs: number; readonly workMs: number }[]) => {
  const time = createVirtualTime()
  const processors = createProcessors(time, count)
  const done = works.map(() => 0)
  for (const [index, { startMs, workMs }] of works.entries())
    time.at(startMs, () =>
      processors.compute(workMs, () => {
        done[index] = Math.round(time.nowMs())
      }),
    )
  time.runUntil(Number.POSITIVE_INFINITY)
  return done
}

describe('processors that pods share', () => {
  const three = [0, 0, 0].map((startMs) => ({ startMs, workMs: 100 }))

  test.each([
    { name: 'enough for all', count: 3, works: three, done: [100, 100, 100] },
    { name: 'any number', count: Number.POSITIVE_INFINITY, works: three, done: [100, 100, 100] },
    { name: 'fewer than pods', count: 2, works: three, done: [150, 150, 150] },
    {
      name: 'one that is shared for a while',
      count: 1,
      works: [
        { startMs: 0, workMs: 100 },
        { startMs: 50, workMs: 25 },
      ],
      done: [125, 100],
    },
    { name: 'a trace with the time of day', count: 2, works: [{ startMs: 1.7e12, workMs: 100 }], done: [1.7e12 + 100] },
  ])('$name', ({ count, works, done }) => {
    expect(doneAt(count, works)).toEqual(done)
  })
})
