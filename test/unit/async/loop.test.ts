import { expect, test } from '@jest/globals'
import { createLoop } from '../../../src/async/loop.ts'
import { eventually } from '../../support/eventually.ts'

/** A loop whose every run waits until the test ends it. */
const setUp = (intervalMs = 1) => {
  const runs: { readonly signal: AbortSignal; readonly end: () => void }[] = []
  const loop = createLoop({
    work: (signal) => new Promise((resolve) => void runs.push({ signal, end: resolve })),
    intervalMs,
  })
  return { runs, loop }
}

test('createLoop starts the next run when the one before has ended and the interval is over', async () => {
  const { runs, loop } = setUp()
  const first = loop.start()
  expect(runs).toHaveLength(1)
  runs[0]?.end()
  await first
  await eventually(() => runs.length === 2)
  runs[1]?.end()
  await eventually(() => runs.length === 3)
  runs[2]?.end()
  await loop.stop()
})

test('createLoop aborts the run under way when it is stopped, waits for its end, and starts no other', async () => {
  const { runs, loop } = setUp()
  void loop.start()
  let isStopped = false
  const stopped = loop.stop().then(() => {
    isStopped = true
  })
  expect(runs[0]?.signal.aborted).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  expect(isStopped).toBe(false)
  runs[0]?.end()
  await stopped
  expect(runs).toHaveLength(1)
})

test('createLoop ends its pause when it is stopped', async () => {
  const { runs, loop } = setUp(3_600_000)
  const first = loop.start()
  runs[0]?.end()
  await first
  await loop.stop()
  expect(runs).toHaveLength(1)
})
