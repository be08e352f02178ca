import { describe, expect, test } from '@jest/globals'
import { createStepGate } from '../../../../playground/engine/step-gate.ts'
import { createLatch } from '../../../support/latch.ts'

/** Work that ends when told to. */
function controlledWork(log: string[], name: string) {
  const end = createLatch()
  const work = async () => {
    log.push(`${name} begins`)
    await end.opened
    log.push(`${name} ends`)
  }
  return { work, end: end.open }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the step gate', () => {
  test('runs steps together, and exclusive work between them', async () => {
    const gate = createStepGate()
    const log: string[] = []
    const [a, b, c] = [controlledWork(log, 'a'), controlledWork(log, 'b'), controlledWork(log, 'c')]
    const x = controlledWork(log, 'x')
    const all = [gate.step(a.work), gate.step(b.work), gate.exclusive(x.work), gate.step(c.work)]
    await settled()
    expect(log).toEqual(['a begins', 'b begins'])
    a.end()
    await settled()
    expect(log.slice(2)).toEqual(['a ends'])
    b.end()
    await settled()
    expect(log.slice(3)).toEqual(['b ends', 'x begins'])
    x.end()
    await settled()
    expect(log.slice(5)).toEqual(['x ends', 'c begins'])
    c.end()
    await Promise.all(all)
  })

  test('is not starved by steps that always overlap', async () => {
    const gate = createStepGate()
    let exclusiveRan = false
    const stepUntilThen = async () => {
      while (!exclusiveRan) await gate.step(settled)
    }
    await Promise.all([
      stepUntilThen(),
      stepUntilThen(),
      gate.exclusive(async () => {
        exclusiveRan = true
      }),
    ])
    expect(exclusiveRan).toBe(true)
  })

  test('goes on after work that failed', async () => {
    const gate = createStepGate()
    const fail = async () => {
      throw new Error('no')
    }
    await expect(gate.step(fail)).rejects.toThrow('no')
    await expect(gate.exclusive(fail)).rejects.toThrow('no')
    expect(await gate.exclusive(async () => 1)).toBe(1)
    expect(await gate.step(async () => 2)).toBe(2)
  })
})
