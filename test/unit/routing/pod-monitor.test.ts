import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { createPodMonitor, type PodChange, type PodMonitor } from '../../../src/routing/pod-monitor.ts'
import type { ProbeResult } from '../../../src/routing/pod-probe.ts'
import { eventually } from '../../support/eventually.ts'

const load = { running: 3, waiting: 1, kvUsage: 0.5 }
const noLoad = { running: 0, waiting: 0, kvUsage: 0 }
const healthy: ProbeResult = { problem: undefined, load: noLoad }
const loaded: ProbeResult = { problem: undefined, load }
const withoutLoad: ProbeResult = { problem: undefined, load: undefined }
const broken: ProbeResult = { problem: 'ECONNREFUSED', load: undefined }

/** A probe whose every check waits until the test gives its result. */
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

afterEach(() => monitor.stop())

/** Gives the next checks these results, and waits for the check after them. */
const findNext = async (...results: readonly ProbeResult[]): Promise<void> => {
  for (const result of results) {
    await eventually(() => expect(probe.waiting).not.toHaveLength(0))
    probe.waiting.shift()?.settle(result)
  }
  await eventually(() => expect(probe.waiting).not.toHaveLength(0))
}

const isReady = (): readonly boolean[] => monitor.pods().map((pod) => pod.ready)

test('watch resolves after the first check of every pod; one success makes a pod ready', async () => {
  const watching = monitor.watch(['a:1', 'b:1'])
  expect(isReady()).toEqual([false, false])
  await findNext(broken, healthy)
  await watching
  expect(isReady()).toEqual([false, true])
  expect(changes.map(({ kind }) => kind)).toEqual(['added', 'added', 'ready'])
})

test('a pod that Kubernetes takes out is not ready, however healthy, until it is back', async () => {
  void monitor.watch(['a:1'], new Map([['a:1', { isServing: false }]]))
  await findNext(healthy)
  expect(isReady()).toEqual([false])
  void monitor.watch(['a:1'], new Map([['a:1', { isServing: true, instance: 'lm-1' }]]))
  expect(monitor.pods()).toMatchObject([{ ready: true, instance: 'lm-1' }])
  void monitor.watch(['a:1'], new Map([['a:1', { isServing: false }]]))
  expect(changes.map(({ kind }) => kind)).toEqual(['added', 'ready', 'failing'])
  expect(changes.at(-1)).toMatchObject({ reason: 'not ready in Kubernetes' })
})

test('pods that serve only after the first list are new for ten seconds', () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0)
  void monitor.watch(['a:1', 'b:1'], new Map([['b:1', { isServing: false }]]))
  void monitor.watch(['a:1', 'b:1', 'c:1'])
  const early = monitor.pods().map((pod) => pod.isNew)
  clock.mockReturnValue(10_000)
  const late = monitor.pods().map((pod) => pod.isNew)
  clock.mockRestore()
  expect([...early, ...late]).toEqual([false, true, true, false, false, false])
})

test('pod is out after two failures in a row, and ready again after one success', async () => {
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

test('pod with a failed turn is out at once, until a check succeeds that started later', async () => {
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

test('pod that refuses the credential stays ready, and is reported once until it accepts it', async () => {
  const refusing: ProbeResult = { ...healthy, refusal: 'GET /metrics answered 401' }
  void monitor.watch(['a:1'])
  await findNext(refusing, refusing, broken, refusing)
  expect(isReady()).toEqual([true])
  await findNext(healthy, healthy)
  expect(changes).toEqual([
    { kind: 'added', address: 'a:1' },
    { kind: 'unauthorized', address: 'a:1', reason: 'GET /metrics answered 401' },
    { kind: 'ready', address: 'a:1' },
    { kind: 'authorized', address: 'a:1' },
  ])
})

test('markUnhealthy changes nothing of a pod that is out, or unknown', async () => {
  void monitor.watch(['a:1'])
  await findNext(broken)
  for (const address of ['a:1', 'b:1']) monitor.markUnhealthy(address)
  expect(changes).toEqual([{ kind: 'added', address: 'a:1' }])
})

test('pods have the last report of the load, and the turns in flight at its time', async () => {
  void monitor.watch(['a:1'])
  monitor.turnStarted('a:1', 't1')
  await findNext(loaded)
  monitor.turnStarted('a:1', 't2')
  const seen = { address: 'a:1', ready: true, isNew: false, inFlight: 2, ...load, inFlightAtRead: 1 }
  expect(monitor.pods()).toEqual([seen])
  await findNext(withoutLoad)
  expect(monitor.pods()).toEqual([seen])
  monitor.turnEnded('a:1', 't1')
  await findNext(healthy)
  expect(monitor.pods()).toEqual([{ ...seen, inFlight: 1, ...noLoad }])
})

test('turn that the engine no longer runs leaves the count, although another gateway learnt of its end', async () => {
  const now = performance.now.bind(performance)
  const clock = jest.spyOn(performance, 'now')
  void monitor.watch(['a:1'])
  monitor.turnStarted('a:1', 't1')
  await findNext(healthy)
  expect(monitor.pods()).toMatchObject([{ inFlight: 1 }])
  clock.mockImplementation(() => now() + 30_000)
  await findNext(healthy)
  expect(monitor.pods()).toMatchObject([{ inFlight: 0, inFlightAtRead: 0 }])
  clock.mockRestore()
})

test('turns of a pod count until it is removed, each pod separately', async () => {
  void monitor.watch(['a:1', 'b:1'])
  for (const address of ['a:1', 'b:1', 'c:1']) monitor.turnStarted(address, 't1')
  monitor.turnStarted('b:1', 't2')
  expect(monitor.pods()).toMatchObject([{ inFlight: 1 }, { inFlight: 2 }])
  void monitor.watch(['b:1'])
  void monitor.watch(['a:1', 'b:1', 'c:1'])
  expect(monitor.pods()).toMatchObject([{ inFlight: 0 }, { inFlight: 2 }, { inFlight: 0 }])
})

test('pods have the models of the last check that names them', async () => {
  const models = { names: new Set(['m']), answersAnyName: false }
  void monitor.watch(['a:1'])
  await findNext(healthy)
  expect(monitor.pods()).toMatchObject([{ models: undefined }])
  await findNext({ ...healthy, models }, broken)
  expect(monitor.pods()).toMatchObject([{ models }])
})

test('report of the load is dropped after three checks in a row without one', async () => {
  void monitor.watch(['a:1'])
  await findNext(loaded, withoutLoad, withoutLoad)
  expect(monitor.pods()).toMatchObject([{ ready: true, ...load }])
  await findNext(withoutLoad)
  expect(monitor.pods()).toMatchObject([{ ready: true, ...noLoad, inFlightAtRead: 0 }])
})

test('changed list: pods that stay keep their state, new ones are checked, others are not', async () => {
  void monitor.watch(['a:1', 'b:1'])
  await findNext(healthy, healthy)
  const watching = monitor.watch(['c:1', 'b:1', 'b:1'])
  await eventually(() => expect(probe.waiting.map((check) => check.address)).toContain('c:1'))
  expect(monitor.pods().map((pod) => [pod.address, pod.ready])).toEqual([
    ['c:1', false],
    ['b:1', true],
  ])
  for (const check of probe.waiting.splice(0)) check.settle(healthy)
  await watching
  expect(isReady()).toEqual([true, true])
  expect(changes.slice(-3)).toEqual([
    { kind: 'added', address: 'c:1' },
    { kind: 'removed', address: 'a:1' },
    { kind: 'ready', address: 'c:1' },
  ])
})

test('stops in the middle of the first checks', async () => {
  const watching = monitor.watch(['a:1'])
  await monitor.stop()
  await watching
  expect(isReady()).toEqual([false])
  expect(probe.waiting).toHaveLength(1)
})
