import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { Admission, LoadWork, TurnWork } from '../../../src/admission/admission.ts'
import type { AdmissionSettings } from '../../../src/admission/plan/plan-admission.ts'
import { admissionBy, planOf } from '../../support/planned-admission.ts'

const [podA, podB] = ['10.0.0.1:8000', '10.0.0.2:8000']

const setUp = (settings: Partial<AdmissionSettings> = {}) => {
  const events: unknown[] = []
  const admission = admissionBy(planOf({ requirements: ['prefill=R1:1'], ...settings }, [podA, podB]), {
    maxWaitMs: 5000,
    leaseMs: 60_000,
    events: {
      settled: (kind, settlement, waitedMs) =>
        void events.push([kind, settlement.kind === 'refused' ? settlement.reason : settlement.kind, waitedMs]),
      leaseExpired: (kind) => void events.push([kind, 'lease']),
    },
  })
  return { admission, events }
}

type Answer = ReturnType<Admission['admit']>

const ask = (
  admission: Admission,
  turnId: string,
  work: Partial<TurnWork> & { readonly pod?: string } = {},
  signal = new AbortController().signal,
): Answer =>
  admission.admit({
    turnId,
    model: undefined,
    tenant: undefined,
    isShort: false,
    pick: (mayChoose) => [work.pod ?? podA].find((pod) => mayChoose(pod, () => false)),
    roomWaitMs: 60_000,
    signal,
    ...work,
  })

const askLoad = (admission: Admission, load: Pick<LoadWork, 'turnId'>): Answer =>
  admission.admitLoad({ model: undefined, pod: podA, waitMs: 1000, signal: new AbortController().signal, ...load })

const kindOf = (answer: Answer): string => ('kind' in answer ? answer.kind : 'waiting')

const settlementOf = async (answer: Answer): Promise<unknown> => ('kind' in answer ? 'did not wait' : answer)

const admittedTo = (pod: string) => ({ kind: 'admitted', pod, hasRoom: true })

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
    expect([podA, podB, podA].map((pod, index) => kindOf(ask(admission, `t${index}`, { pod })))).toEqual(expected)
  })

  test('admits work that requires nothing, without an event', () => {
    const { admission, events } = setUp({ requirements: ['prefill/A=R1:1'] })
    for (const turnId of ['t1', 't2', 't3']) expect(kindOf(ask(admission, turnId, { model: 'B' }))).toBe('admitted')
    expect(events).toEqual([])
    expect(admission.usage([podA])).toEqual([{ resource: 'R1', pod: podA, inUse: 0, count: 1 }])
  })

  test.each<[string, number, (admission: Admission) => void, object, unknown]>([
    [
      'admits waiting work when the turn before it ends',
      1500,
      (admission) => admission.release('prefill', 't1'),
      admittedTo(podA),
      ['prefill', 'admitted', 1500],
    ],
    [
      'refuses work that has waited for waitMs',
      5000,
      () => {},
      { kind: 'refused', reason: 'timeout' },
      ['prefill', 'timeout', 5000],
    ],
    [
      'removes waiting work when it is closed',
      1,
      (admission) => admission.close(),
      { kind: 'left' },
      ['prefill', 'left', 1],
    ],
  ])('%s', async (_title, afterMs, act, settlement, event) => {
    const { admission, events } = setUp()
    void ask(admission, 't1')
    const second = settlementOf(ask(admission, 't2'))
    jest.advanceTimersByTime(afterMs)
    act(admission)
    expect(await second).toEqual(settlement)
    expect(events).toEqual([['prefill', 'admitted', 0], event])
    expect(jest.getTimerCount()).toBe(0)
  })

  test('admits by the priority of the model, or the default priority', async () => {
    const { admission } = setUp({ priorities: ['first=1', 'last=3'] })
    const order: string[] = []
    void ask(admission, 't0')
    const all = ['last', 'other', 'first'].map(async (model) => {
      await settlementOf(ask(admission, model, { model }))
      order.push(model)
      admission.release('prefill', model)
    })
    admission.release('prefill', 't0')
    await Promise.all(all)
    expect(order).toEqual(['first', 'other', 'last'])
  })

  test('removes work from the queue when its client disconnects, and admits the next', async () => {
    const { admission } = setUp()
    const client = new AbortController()
    void ask(admission, 't1')
    const second = settlementOf(ask(admission, 't2', {}, client.signal))
    const third = settlementOf(ask(admission, 't3'))
    client.abort()
    expect(await second).toEqual({ kind: 'left' })
    expect(await settlementOf(ask(admission, 't4', {}, client.signal))).toEqual({ kind: 'left' })
    expect(admission.waiting()).toBe(1)
    admission.release('prefill', 't1')
    expect(await third).toEqual(admittedTo(podA))
  })

  test('lets a turn go on that waited for a full pod for too long, at another one', async () => {
    const { admission } = setUp({ requirements: [] })
    const pick: TurnWork['pick'] = (mayChoose, waitedMs) =>
      mayChoose(podA, () => false) ? podA : waitedMs >= 100 ? podB : undefined
    const turn: TurnWork = {
      turnId: 't1',
      model: undefined,
      tenant: undefined,
      isShort: false,
      pick,
      roomWaitMs: 100,
      signal: new AbortController().signal,
    }
    expect(admission.admit(turn)).toEqual(admittedTo(podA))
    const second = settlementOf(admission.admit(turn, { pod: podA, isShort: false }))
    jest.advanceTimersByTime(100)
    expect(await second).toEqual({ ...admittedTo(podB), hasRoom: false })
  })

  test('frees the resources of a turn whose end is not reported when its lease expires', async () => {
    const { admission, events } = setUp()
    void ask(admission, 'lost')
    jest.advanceTimersByTime(58_000)
    const second = settlementOf(ask(admission, 't2'))
    jest.advanceTimersByTime(2000)
    expect(await second).toEqual(admittedTo(podA))
    expect(events).toContainEqual(['prefill', 'lease'])
    jest.advanceTimersByTime(60_000)
    expect(kindOf(ask(admission, 't3'))).toBe('admitted')
    jest.advanceTimersByTime(60_000)
    expect(admission.usage([podA])).toEqual([{ resource: 'R1', pod: podA, inUse: 0, count: 1 }])
  })

  test('reports the usage of global resources once, and of others at every pod', () => {
    const { admission } = setUp({
      requirements: ['prefill=R1:1 R2:1'],
      resources: ['R1:3', 'R2:2:1'],
      globalResources: ['R1'],
    })
    void ask(admission, 't1', { pod: podB })
    expect(admission.usage([podA, podB])).toEqual([
      { resource: 'R1', pod: undefined, inUse: 1, count: 3 },
      { resource: 'R2', pod: podA, inUse: 0, count: 1 },
      { resource: 'R2', pod: podB, inUse: 1, count: 2 },
    ])
  })

  test('releases the load of a turn without the turn', () => {
    const { admission } = setUp({ requirements: ['prefill=R1:1', 'load=disk:1'] })
    void ask(admission, 't1')
    void askLoad(admission, { turnId: 't1' })
    admission.release('load', 't1')
    expect(admission.usage([podA]).map(({ inUse }) => inUse)).toEqual([1, 0])
  })
})
