import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import {
  type ContextGateway,
  createContextGateway,
  gatewayWithSession,
  nothingLeft,
  podA,
} from '../../support/context-gateway.ts'
import { cacheStatusOf } from '../../support/decisions.ts'
import { eventually } from '../../support/eventually.ts'
import { createLatch } from '../../support/latch.ts'
import type { MemoryKvConnector } from '../../support/memory-kv-connector.ts'

/** A gateway with a session that expires in 60 s. */
const expiringSoon = () => gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })

const createMany = async (gateway: ContextGateway, count: number): Promise<void> => {
  for (let made = 0; made < count; made += 1) await gateway.create()
}

const countSweeps = (gateway: ContextGateway): (() => number) => {
  let sweeps = 0
  gateway.store.before('expireDue', () => {
    sweeps += 1
  })
  return () => sweeps
}

afterEach(() => {
  jest.useRealTimers()
})

describe('a sweep', () => {
  test('ends an expired session and removes its KV', async () => {
    const { gateway, id } = await expiringSoon()
    gateway.advance(60)

    await gateway.sweep()

    expect(await gateway.leftovers()).toEqual(nothingLeft)
    expect(gateway.events.of('sessionsExpired')).toEqual([[1]])
    expect(gateway.events.of('removed')).toEqual([['session', expect.any(String)]])
    expect(cacheStatusOf(await gateway.use(id))).toBe('miss; reason=session_expired')
  })

  test.each([1, 3, 7, 100])('ends and removes all sessions in steps of %i', async (batchSize) => {
    const gateway = createContextGateway({ batchSize })
    await createMany(gateway, 7)
    gateway.advance(3600)

    await gateway.sweep()

    expect(await gateway.leftovers()).toEqual(nothingLeft)
    expect(gateway.events.of('removed')).toHaveLength(7)
  })

  test('retries a busy removal with increasing delays', async () => {
    const { gateway } = await expiringSoon()
    gateway.connector.faults.keepBusy(true)
    await gateway.sweep(60)
    await gateway.sweep()
    await gateway.sweep(0.2)
    await gateway.sweep(0.2)
    gateway.connector.faults.keepBusy(false)

    await gateway.sweep(0.2)

    expect(gateway.events.of('removalPostponed')).toEqual([
      ['in_use', 1],
      ['in_use', 2],
    ])
    expect(gateway.fleet.everything()).toEqual([])
  })

  test('retries a busy removal at least every 30 s', async () => {
    const { gateway } = await expiringSoon()
    gateway.connector.faults.keepBusy(true)
    gateway.advance(60)

    for (let tries = 1; tries <= 20; tries += 1) {
      await gateway.sweep()
      gateway.advance(30)
    }

    expect(gateway.events.of('removalPostponed')).toHaveLength(20)
  })

  test('tries each removal once, however long they find their KV in use', async () => {
    const gateway = createContextGateway()
    await createMany(gateway, 50)
    let calls = 0
    gateway.connector.faults.before('remove', () => {
      calls += 1
      gateway.advance(0.01)
    })
    gateway.connector.faults.keepBusy(true)

    await gateway.sweep(3600)

    expect(calls).toBe(50)
  })

  test('gives a removal up when its lease ends', async () => {
    jest.useFakeTimers()
    let signal = new AbortController().signal
    const remove: MemoryKvConnector['remove'] = (_removal, given) => {
      signal = given
      return new Promise(() => {})
    }
    const gateway = createContextGateway({ removalLeaseMs: 4000, wrapConnector: (wrapped) => ({ ...wrapped, remove }) })
    await gateway.create()
    const sweeping = gateway.sweep(3600)

    await jest.advanceTimersByTimeAsync(3999)
    expect(signal.aborted).toBe(false)
    await jest.advanceTimersByTimeAsync(1001)
    expect(signal.aborted).toBe(true)
    await sweeping
  })

  test('keeps the removal of foreign KV, and retries it every 10 minutes', async () => {
    const { gateway } = await expiringSoon()
    gateway.connector.faults.keepForeign(true)
    await gateway.sweep(60)
    await gateway.sweep(599)
    await gateway.sweep(1)
    gateway.connector.faults.keepForeign(false)

    expect(gateway.events.of('removalForeign')).toEqual([[1], [2]])
    expect(gateway.fleet.everything()).not.toEqual([])
    await gateway.sweep(600)
    expect(await gateway.leftovers()).toEqual(nothingLeft)
  })

  test.each([0, 9])('looks for orphans at intervals, also when the first %d searches fail', async (failures) => {
    const gateway = createContextGateway()
    gateway.store.failNext('knownArtefacts', failures)

    const counts: number[] = []
    for (const seconds of [0, 0, 29, 1, 0, 30]) {
      await gateway.sweep(seconds)
      counts.push(gateway.connector.sweeps())
    }

    expect(counts).toEqual([1, 1, 1, 2, 2, 3])
  })

  test('removes orphaned KV and keeps known KV', async () => {
    const { gateway, id, key } = await gatewayWithSession({ pods: [podA] })
    gateway.fleet.store('orphan', { session: key, tokens: 5 })

    await gateway.sweep()
    gateway.fleet.restart(podA)

    expect(gateway.fleet.artefactIds()).toHaveLength(1)
    expect(cacheStatusOf(await gateway.use(id))).toMatch(/^hit; tier=store/)
  })

  test('keeps KV that a turn is about to commit', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    gateway.store.before('commitKv', () => gateway.sweep())

    const { id } = await gateway.create()
    gateway.fleet.restart(podA)

    expect(cacheStatusOf(await gateway.use(id))).toMatch(/^hit; tier=store/)
  })

  test.each(['expireDue', 'claim', 'knownArtefacts', 'ack', 'retryLater'] as const)(
    'reports a failure of %s and finishes in a later sweep',
    async (operation) => {
      const { gateway } = await expiringSoon()
      gateway.connector.faults.keepBusy(operation === 'retryLater')
      gateway.advance(60)
      gateway.store.failNext(operation, 1)

      await gateway.sweep()
      gateway.connector.faults.keepBusy(false)
      await gateway.sweep(60)

      expect(gateway.events.of('storeFault')).toHaveLength(1)
      expect(gateway.events.of('fault')).toEqual([])
      expect(await gateway.leftovers()).toEqual(nothingLeft)
    },
  )

  test('removes the others when one removal throws', async () => {
    const gateway = createContextGateway()
    await createMany(gateway, 3)
    let calls = 0
    gateway.connector.faults.before('remove', () => {
      calls += 1
      if (calls === 2) throw new Error('broken connector')
    })
    gateway.advance(3600)

    await gateway.sweep()
    const left = gateway.fleet.artefactIds().length
    await gateway.sweep(30)

    expect(left).toBe(1)
    expect(gateway.events.of('fault').map(([where]) => where)).toEqual(['removal'])
    expect(gateway.fleet.everything()).toEqual([])
  })
})

test.each(['remove', 'knownArtefacts'] as const)(
  'neither sweep nor stop waits for a %s that never settles',
  async (operation) => {
    jest.useFakeTimers()
    const gateway = createContextGateway()
    let calls = 0
    const hang = () => {
      calls += 1
      return new Promise<void>(() => {})
    }
    if (operation === 'remove') gateway.connector.faults.before(operation, hang)
    else gateway.store.before(operation, hang)
    await gateway.create()
    const late = gateway.sweep(3600)
    await jest.advanceTimersByTimeAsync(11_000)
    await late
    await gateway.create()

    const swept = gateway.sweep(3600)
    await jest.advanceTimersByTimeAsync(5_000)
    const stopped = gateway.reaper.stop()
    await jest.advanceTimersByTimeAsync(1_000)
    await Promise.all([swept, stopped])

    // The first removal still runs, and is not called again.
    expect(calls).toBe(2)
    expect(gateway.events.of('removalPostponed').every(([reason]) => reason === 'no_answer')).toBe(true)
  },
)

describe('sweeps requested while one runs', () => {
  test('share the next sweep, which starts after the request', async () => {
    const gateway = createContextGateway()
    const sweeps = countSweeps(gateway)
    const running = gateway.sweep()
    await gateway.create({ headers: { 'x-session-ttl': '60' } })
    gateway.advance(60)

    const [second, third] = [gateway.sweep(), gateway.sweep()]
    await Promise.all([running, second, third])

    expect(gateway.fleet.everything()).toEqual([])
    expect(sweeps()).toBe(2)
  })

  test('run without a caller that waits', async () => {
    const { gateway } = await expiringSoon()
    gateway.advance(60)

    gateway.reaper.triggerSweep()

    await eventually(() => gateway.events.of('removed').length > 0)
    expect(gateway.events.of('removed')).toEqual([['session', expect.any(String)]])
    expect(gateway.fleet.everything()).toEqual([])
  })
})

describe('a started reaper', () => {
  test('sweeps at every interval, also after a failed sweep', async () => {
    jest.useFakeTimers()
    const gateway = createContextGateway({ sweepIntervalMs: 1000 })
    const sweeps = countSweeps(gateway)
    gateway.store.failNext('expireDue', 2)
    gateway.reaper.start()

    await jest.advanceTimersByTimeAsync(5500)
    await gateway.reaper.stop()

    expect(sweeps()).toBe(3)
    expect(gateway.events.of('storeFault')).toHaveLength(2)
    expect(gateway.connector.sweeps()).toBe(1)
  })

  test('does nothing after stop', async () => {
    jest.useFakeTimers()
    const gateway = createContextGateway({ sweepIntervalMs: 1000 })
    gateway.reaper.start()
    await jest.advanceTimersByTimeAsync(1500)
    await gateway.reaper.stop()
    await gateway.create({ headers: { 'x-session-ttl': '60' } })
    gateway.advance(60)

    await jest.advanceTimersByTimeAsync(10_000)
    await gateway.sweep()

    expect(jest.getTimerCount()).toBe(0)
    expect(gateway.fleet.artefactIds()).toHaveLength(1)
  })

  test('schedules no sweep when stopped during one', async () => {
    jest.useFakeTimers()
    const gateway = createContextGateway({ sweepIntervalMs: 1000 })
    let stopping: Promise<void> | undefined
    gateway.store.before('expireDue', () => {
      stopping ??= gateway.reaper.stop()
    })
    gateway.reaper.start()

    await jest.advanceTimersByTimeAsync(10_000)
    await stopping

    expect(jest.getTimerCount()).toBe(0)
  })

  test('stop waits for the running sweep', async () => {
    const { gateway } = await expiringSoon()
    gateway.advance(60)
    const removal = createLatch()
    let isRemoving = false
    gateway.connector.faults.before('remove', () => {
      isRemoving = true
      return removal.opened
    })
    gateway.reaper.triggerSweep()
    await eventually(() => isRemoving)

    let isStopped = false
    const stopping = gateway.reaper.stop().then(() => {
      isStopped = true
    })
    await setImmediate()
    const before = isStopped
    removal.open()
    await stopping

    expect(before).toBe(false)
    expect(gateway.fleet.everything()).toEqual([])
  })
})
