import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { type Admission, type AdmissionAnswer, createAdmission } from '../../../src/admission/admission.ts'
import type { AdmissionSettings } from '../../../src/admission/plan/plan-admission.ts'
import { planAdmission } from '../../../src/admission/plan/plan-admission.ts'

const [podA, podB] = ['10.0.0.1:8000', '10.0.0.2:8000']

const setUp = (given: Partial<AdmissionSettings> & { readonly maxWaiting?: number } = {}) => {
  const { maxWaiting = 10, ...settings } = given
  const outcome = planAdmission(
    {
      requirements: ['prefill=R1:1'],
      resources: [],
      globalResources: [],
      priorities: [],
      defaultPriority: 2,
      ...settings,
    },
    [podA, podB],
  )
  if (outcome.kind !== 'planned') throw new Error(outcome.kind)
  const events: unknown[] = []
  const admission = createAdmission({
    plan: outcome.plan,
    maxWaiting,
    maxWaitMs: 5000,
    leaseMs: 60_000,
    nowMs: () => performance.now(),
    events: {
      settled: (kind, settlement, waitedMs) =>
        void events.push([kind, settlement.kind === 'refused' ? settlement.reason : settlement.kind, waitedMs]),
      leaseExpired: (kind) => void events.push([kind, 'lease']),
    },
  })
  return { admission, events }
}

const ask = (
  admission: Admission,
  turnId: string,
  more: {
    readonly pod?: string
    readonly model?: string
    readonly kind?: 'prefill' | 'load'
    readonly signal?: AbortSignal
  } = {},
): AdmissionAnswer =>
  admission.request(
    { kind: more.kind ?? 'prefill', turnId, model: more.model, pod: more.pod ?? podA },
    { waitMs: admission.maxWaitMs, client: { signal: more.signal ?? new AbortController().signal } },
  )

const settlementOf = async (answer: AdmissionAnswer): Promise<unknown> =>
  answer.kind === 'waiting' ? answer.settled : 'did not wait'

describe('admission', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })

  afterEach(() => {
    jest.useRealTimers()
  })

  test.each([
    ['each pod separately', [], ['admitted', 'admitted', 'waiting']],
    ['all pods together for a global resource', ['R1'], ['admitted', 'waiting', 'waiting']],
  ])('counts %s', (_name, globalResources, expected) => {
    const { admission } = setUp({ globalResources })
    const kinds = [podA, podB, podA].map((pod, index) => ask(admission, `t${index}`, { pod }).kind)
    expect(kinds).toEqual(expected)
  })

  test('admits work that requires nothing, without an event', () => {
    const { admission, events } = setUp({ requirements: ['prefill/A=R1:1'] })
    for (const turnId of ['t1', 't2', 't3']) expect(ask(admission, turnId, { model: 'B' }).kind).toBe('admitted')
    expect(events).toEqual([])
    expect(admission.usage([podA])).toEqual([{ resource: 'R1', pod: podA, inUse: 0, count: 1 }])
  })

  test('admits waiting work when the turn before it ends', async () => {
    const { admission, events } = setUp()
    ask(admission, 't1')
    const second = settlementOf(ask(admission, 't2'))
    jest.advanceTimersByTime(1500)
    admission.release('prefill', 't1')
    expect(await second).toEqual({ kind: 'admitted' })
    expect(events).toEqual([
      ['prefill', 'admitted', 0],
      ['prefill', 'admitted', 1500],
    ])
    expect(jest.getTimerCount()).toBe(0)
  })

  test('admits by the priority of the model, or the default priority', async () => {
    const { admission } = setUp({ priorities: ['first=1', 'last=3'] })
    const order: string[] = []
    ask(admission, 't0')
    const all = ['last', 'other', 'first'].map(async (model) => {
      await settlementOf(ask(admission, model, { model }))
      order.push(model)
      admission.release('prefill', model)
    })
    admission.release('prefill', 't0')
    await Promise.all(all)
    expect(order).toEqual(['first', 'other', 'last'])
  })

  test('refuses work that has waited for waitMs', async () => {
    const { admission, events } = setUp()
    ask(admission, 't1')
    const second = settlementOf(ask(admission, 't2'))
    jest.advanceTimersByTime(5000)
    expect(await second).toEqual({ kind: 'refused', reason: 'timeout' })
    expect(events.at(-1)).toEqual(['prefill', 'timeout', 5000])
    expect(jest.getTimerCount()).toBe(0)
  })

  test('refuses work at once when the queue is full', () => {
    const { admission, events } = setUp({ maxWaiting: 1 })
    ask(admission, 't1')
    ask(admission, 't2')
    expect(ask(admission, 't3')).toEqual({ kind: 'refused', reason: 'full' })
    expect(events.at(-1)).toEqual(['prefill', 'full', 0])
    expect(admission.waiting()).toBe(1)
  })

  test('removes work from the queue when its client disconnects, and admits the next', async () => {
    const { admission } = setUp()
    const client = new AbortController()
    ask(admission, 't1')
    const second = settlementOf(ask(admission, 't2', { signal: client.signal }))
    const third = settlementOf(ask(admission, 't3'))
    client.abort()
    expect(await second).toEqual({ kind: 'left' })
    expect(admission.waiting()).toBe(1)
    admission.release('prefill', 't1')
    expect(await third).toEqual({ kind: 'admitted' })
  })

  test('does not queue work whose client has disconnected', async () => {
    const { admission } = setUp()
    ask(admission, 't1')
    expect(await settlementOf(ask(admission, 't2', { signal: AbortSignal.abort() }))).toEqual({ kind: 'left' })
    expect(admission.waiting()).toBe(0)
  })

  test('frees the resources of a turn whose end is not reported when its lease expires', async () => {
    const { admission, events } = setUp()
    ask(admission, 'lost')
    jest.advanceTimersByTime(58_000)
    const second = settlementOf(ask(admission, 't2'))
    jest.advanceTimersByTime(2000)
    expect(await second).toEqual({ kind: 'admitted' })
    expect(events).toContainEqual(['prefill', 'lease'])
    jest.advanceTimersByTime(60_000)
    expect(admission.usage([podA])).toEqual([{ resource: 'R1', pod: podA, inUse: 0, count: 1 }])
  })

  test('reports the usage of global resources once, and of others at every pod', () => {
    const { admission } = setUp({
      requirements: ['prefill=R1:1 R2:1'],
      resources: ['R1:3', 'R2:2:1'],
      globalResources: ['R1'],
    })
    ask(admission, 't1', { pod: podB })
    expect(admission.usage([podA, podB])).toEqual([
      { resource: 'R1', pod: undefined, inUse: 1, count: 3 },
      { resource: 'R2', pod: podA, inUse: 0, count: 1 },
      { resource: 'R2', pod: podB, inUse: 1, count: 2 },
    ])
  })

  test('releases the load of a turn without the turn', () => {
    const { admission } = setUp({ requirements: ['prefill=R1:1', 'load=disk:1'] })
    ask(admission, 't1')
    ask(admission, 't1', { kind: 'load' })
    admission.release('load', 't1')
    expect(admission.usage([podA]).map(({ inUse }) => inUse)).toEqual([1, 0])
  })

  test('removes all waiting work when it is closed', async () => {
    const { admission } = setUp()
    ask(admission, 't1')
    const waiting = ['t2', 't3'].map((turnId) => settlementOf(ask(admission, turnId)))
    admission.close()
    expect(await Promise.all(waiting)).toEqual([{ kind: 'left' }, { kind: 'left' }])
    expect(jest.getTimerCount()).toBe(0)
  })
})
