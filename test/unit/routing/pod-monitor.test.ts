import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createPodMonitor, type PodChange, type PodMonitor } from '../../../src/routing/pod-monitor.ts'
import type { ProbeResult } from '../../../src/routing/pod-probe.ts'
import { eventually } from './eventually.ts'

const healthy: ProbeResult = { problem: undefined, load: { running: 0, waiting: 0, kvUsage: 0 } }
const broken: ProbeResult = { problem: 'ECONNREFUSED', load: undefined }

/** A probe whose every look waits for the test to say what it finds. */
const createSteppedProbe = () => {
  const waiting: { readonly address: string; readonly settle: (result: ProbeResult) => void }[] = []
  return {
    waiting,
    probe: (address: string, signal: AbortSignal): Promise<ProbeResult> =>
      new Promise((resolve) => {
        waiting.push({ address, settle: resolve })
        signal.addEventListener('abort', () => resolve(broken), { once: true })
      }),
    close: async () => undefined,
  }
}

describe('createPodMonitor', () => {
  let probe: ReturnType<typeof createSteppedProbe>
  let changes: PodChange[]
  let monitor: PodMonitor

  beforeEach(() => {
    probe = createSteppedProbe()
    changes = []
    monitor = createPodMonitor({
      probe,
      healthIntervalMs: 1,
      healthTimeoutMs: 10_000,
      turnLeaseMs: 60_000,
      onChange: (change) => void changes.push(change),
    })
  })

  afterEach(async () => {
    await monitor.stop()
  })

  /** Lets the next look at the pods find this. */
  const findNext = async (...results: readonly ProbeResult[]): Promise<void> => {
    for (const result of results) {
      await eventually(() => expect(probe.waiting).not.toHaveLength(0))
      probe.waiting.shift()?.settle(result)
    }
    await eventually(() => expect(probe.waiting).not.toHaveLength(0))
  }

  const isReady = (): readonly boolean[] => monitor.pods().map((pod) => pod.ready)

  test('a pod is ready after one success', async () => {
    const watching = monitor.watch(['a:1'])
    expect(isReady()).toEqual([false])
    await findNext(healthy)
    await watching
    expect(isReady()).toEqual([true])
    expect(changes).toEqual([
      { kind: 'added', address: 'a:1' },
      { kind: 'ready', address: 'a:1' },
    ])
  })

  test('the first round is over when every pod was looked at, whatever was found', async () => {
    const watching = monitor.watch(['a:1', 'b:1'])
    await findNext(broken, healthy)
    await watching
    expect(isReady()).toEqual([false, true])
  })

  test('one failure is forgiven, two in a row are not', async () => {
    void monitor.watch(['a:1'])
    await findNext(healthy, broken)
    expect(isReady()).toEqual([true])
    await findNext(healthy, broken)
    expect(isReady()).toEqual([true])
    await findNext(broken)
    expect(isReady()).toEqual([false])
    expect(changes.at(-1)).toEqual({ kind: 'failing', address: 'a:1', reason: 'ECONNREFUSED' })
    await findNext(broken, broken)
    expect(changes).toHaveLength(3)
    await findNext(healthy)
    expect(isReady()).toEqual([true])
    expect(changes.at(-1)).toEqual({ kind: 'ready', address: 'a:1' })
  })

  test('a pod with a failed turn is out at once, until a check succeeds that started later', async () => {
    void monitor.watch(['a:1'])
    await findNext(healthy)
    monitor.markUnhealthy('a:1')
    expect(isReady()).toEqual([false])
    expect(changes.at(-1)).toEqual({ kind: 'failing', address: 'a:1', reason: 'upstream failure reported by a turn' })
    await findNext(healthy)
    expect(isReady()).toEqual([false])
    await findNext(healthy)
    expect(isReady()).toEqual([true])
  })

  test('marking a pod that is out already, or unknown, changes nothing', async () => {
    void monitor.watch(['a:1'])
    await findNext(broken)
    monitor.markUnhealthy('a:1')
    monitor.markUnhealthy('b:1')
    expect(changes).toEqual([{ kind: 'added', address: 'a:1' }])
  })

  test('shows the last reading of the load, and what was in flight when it was taken', async () => {
    void monitor.watch(['a:1'])
    monitor.turnStarted('a:1', 't1')
    await findNext({ problem: undefined, load: { running: 3, waiting: 1, kvUsage: 0.5 } })
    monitor.turnStarted('a:1', 't2')
    const seen = {
      address: 'a:1',
      ready: true,
      inFlight: 2,
      running: 3,
      waiting: 1,
      kvUsage: 0.5,
      inFlightAtRead: 1,
    }
    expect(monitor.pods()).toEqual([seen])
    await findNext({ problem: undefined, load: undefined })
    expect(monitor.pods()).toEqual([seen])
    monitor.turnEnded('a:1', 't1')
    await findNext(healthy)
    expect(monitor.pods()).toEqual([{ ...seen, inFlight: 1, running: 0, waiting: 0, kvUsage: 0 }])
  })

  test('drops the last reading of the load after three checks in a row without one', async () => {
    void monitor.watch(['a:1'])
    const silent: ProbeResult = { problem: undefined, load: undefined }
    await findNext({ problem: undefined, load: { running: 3, waiting: 1, kvUsage: 0.5 } }, silent, silent)
    expect(monitor.pods()).toMatchObject([{ ready: true, running: 3, waiting: 1, kvUsage: 0.5 }])
    await findNext(silent)
    expect(monitor.pods()).toMatchObject([{ ready: true, running: 0, waiting: 0, kvUsage: 0, inFlightAtRead: 0 }])
  })

  test('follows a changed list: what stays keeps its state, what is new is looked at, what is gone is left alone', async () => {
    void monitor.watch(['a:1', 'b:1'])
    await findNext(healthy, healthy)
    const watching = monitor.watch(['c:1', 'b:1', 'b:1'])
    await eventually(() => expect(probe.waiting.map((look) => look.address)).toContain('c:1'))
    expect(monitor.pods().map((pod) => [pod.address, pod.ready])).toEqual([
      ['c:1', false],
      ['b:1', true],
    ])
    for (const look of probe.waiting.splice(0)) look.settle(healthy)
    await watching
    expect(isReady()).toEqual([true, true])
    expect(changes.slice(-3)).toEqual([
      { kind: 'added', address: 'c:1' },
      { kind: 'removed', address: 'a:1' },
      { kind: 'ready', address: 'c:1' },
    ])
  })

  test('stops in the middle of the first round', async () => {
    const watching = monitor.watch(['a:1'])
    await monitor.stop()
    await watching
    expect(isReady()).toEqual([false])
    expect(probe.waiting).toHaveLength(1)
  })
})
