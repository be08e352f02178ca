import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from '@jest/globals'
import { createProcessMemoryWatch, type MemoryReading } from '../../../src/sessions/memory/process-memory.ts'
import { until } from '../../support/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

test('memory is read at the start, and after every full garbage collection until the watch is stopped', async () => {
  const readings: MemoryReading[] = []
  const watch = createProcessMemoryWatch()
  watch.start((reading) => readings.push(reading))
  expect(readings).toHaveLength(1)
  collectGarbage()
  await until(() => readings.length > 1)

  for (const { usedBytes, limitBytes } of readings) {
    expect(usedBytes).toBeGreaterThan(1_000_000)
    expect(limitBytes).toBeGreaterThan(usedBytes)
  }
  watch.stop()
  watch.stop()
  const { length } = readings
  collectGarbage()
  await new Promise((resolve) => setImmediate(resolve))
  expect(readings).toHaveLength(length)
})
