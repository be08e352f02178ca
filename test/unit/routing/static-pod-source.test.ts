import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { PodSource } from '../../../src/routing/pod.ts'
import { createStaticPodSource } from '../../../src/routing/pod-monitor.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeEngine, startFakeEngine } from './fake-engine.ts'

describe('createStaticPodSource', () => {
  let engines: FakeEngine[]
  let source: PodSource

  beforeEach(async () => {
    engines = [await startFakeEngine(), await startFakeEngine()]
    source = createStaticPodSource({
      addresses: engines.map((engine) => engine.address),
      healthIntervalMs: 5,
      healthTimeoutMs: 10_000,
      turnLeaseMs: 60_000,
      onChange: () => undefined,
    })
  })

  afterEach(async () => {
    await source.stop()
    await Promise.all(engines.map((engine) => engine.stop()))
  })

  const readyPods = (): readonly string[] =>
    source
      .pods()
      .filter((pod) => pod.ready)
      .map((pod) => pod.address)

  test('knows its pods before it starts, and that none is ready', () => {
    expect(source.pods().map((pod) => pod.address)).toEqual([])
    expect(readyPods()).toEqual([])
  })

  test('knows which pods are ready once it has started', async () => {
    const [first, second] = engines
    second?.behave('/health', { status: 503 })
    await source.start()
    expect(source.pods()).toHaveLength(2)
    expect(readyPods()).toEqual([first?.address])
  })

  test('a pod that dies is left out, and comes back when it is there again', async () => {
    const [first, second] = engines
    await source.start()
    expect(readyPods()).toEqual([first?.address, second?.address])
    await second?.stop()
    await eventually(() => expect(readyPods()).toEqual([first?.address]))
    engines[1] = await startFakeEngine({ port: second?.port ?? 0 })
    await eventually(() => expect(readyPods()).toEqual([first?.address, second?.address]))
  })

  test('sends no checks after stop', async () => {
    const [first] = engines
    await source.start()
    await source.stop()
    const asked = first?.requests('/health')
    await new Promise((resolve) => setImmediate(resolve))
    expect(first?.requests('/health')).toBe(asked)
  })
})
