import { describe, expect, test } from '@jest/globals'
import { watchEventLoop } from '../../../src/telemetry/event-loop.ts'
import { eventually } from '../../support/eventually.ts'

describe('watchEventLoop', () => {
  test('reports lags until it is stopped', async () => {
    const lags: number[] = []
    const watch = watchEventLoop((lagMs) => void lags.push(lagMs))
    await eventually(() => expect(lags.length).toBeGreaterThan(1))
    watch.stop()
    expect(Math.min(...lags)).toBeGreaterThanOrEqual(0)
  })
})
