import { getHeapStatistics } from 'node:v8'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import { type MemoryReading, watchProcessMemory } from '../../../src/sessions/memory/process-memory.ts'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { eventually } from '../../support/eventually.ts'

test('memory is read at the start, and after every full garbage collection until the watch is stopped', async () => {
  const readings: MemoryReading[] = []
  const stop = watchProcessMemory((reading) => readings.push(reading))
  expect(readings).toHaveLength(1)
  collectGarbage()
  await eventually(() => readings.length > 1)

  for (const { usedBytes, limitBytes } of readings) {
    expect(usedBytes).toBeGreaterThan(1_000_000)
    expect(limitBytes).toBeGreaterThan(usedBytes)
  }
  stop()
  stop()
  const { length } = readings
  collectGarbage()
  await new Promise((resolve) => setImmediate(resolve))
  expect(readings).toHaveLength(length)
})

describe('memory of a process', () => {
  afterEach(() => {
    jest.restoreAllMocks()
  })

  const read = (residentBytes: number, containerBytes: number): MemoryReading | undefined => {
    jest.spyOn(process.memoryUsage, 'rss').mockReturnValue(residentBytes)
    jest.spyOn(process, 'constrainedMemory').mockReturnValue(containerBytes)
    const readings: MemoryReading[] = []
    watchProcessMemory((reading) => readings.push(reading))()
    return readings[0]
  }

  test('its resident memory counts against the limit of the container, when that is tighter', () => {
    expect(read(900e6, 1e9)).toEqual({ usedBytes: 900e6, limitBytes: 1e9 })
  })

  test.each([
    { name: 'the container has room', residentBytes: 1, containerBytes: 1e12 },
    { name: 'there is no container', residentBytes: 900e6, containerBytes: 0 },
    { name: 'the container has no limit', residentBytes: 900e6, containerBytes: 2 ** 63 },
  ])('its heap counts against the limit of the heap, when $name', ({ residentBytes, containerBytes }) => {
    const { heap_size_limit: limitBytes } = getHeapStatistics()
    expect(read(residentBytes, containerBytes)).toEqual({ usedBytes: expect.any(Number), limitBytes })
  })
})
