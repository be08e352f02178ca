import { describe, expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { createTtftPredictor } from '../../../src/routing/ttft-predictor.ts'
import { podState } from './pod-state.ts'

/** A predictor with a clock, which knows two sessions. A token takes 1 ms to compute, a megabyte 100 ms to load. */
const setUp = () => {
  const clock = { nowMs: 0 }
  const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 0 })
  const predictor = createTtftPredictor({
    source: { pods: () => [podState('a:1', { inFlight: 3 }), podState('b:1')] },
    costs,
    nowMs: () => clock.nowMs,
    maxSessions: 2,
    turnLeaseMs: 600_000,
  })
  return {
    predictor,
    costs,
    clock,
    backlogs: () => predictor.pods().map((pod) => pod.prefillBacklogMs),
    resident: (session: string) => Object.fromEntries(predictor.residentTokens(session)),
  }
}

const turnAt = (pod: string, turnId: string) => ({ turnId, pod, model: 'm' })

const input = (change: Partial<RoutingInput> = {}): RoutingInput => ({
  affinityKey: 's',
  lastPod: undefined,
  model: 'm',
  promptTokens: 1_000,
  residentTokens: new Map(),
  ...change,
})

const done = { how: 'done', response: { computedTokens: 1_000, ttfbMs: 200 } } as const

describe('createTtftPredictor', () => {
  test('pods keep the state of the source', () => {
    expect(setUp().predictor.pods()[0]).toMatchObject(podState('a:1', { inFlight: 3, prefillBacklogMs: 0 }))
  })

  test('a turn counts with its prediction when routed, with its prompt’s rest when forwarded, until it ends', () => {
    const { predictor, clock, backlogs } = setUp()
    predictor.routed(turnAt('a:1', 't1'), input())
    expect(backlogs()).toEqual([1_000, 0])
    predictor.forwarded(turnAt('a:1', 't1'), input(), 400)
    expect(backlogs()).toEqual([400, 0])
    clock.nowMs = 300
    expect(backlogs()).toEqual([100, 0])
    predictor.ended(turnAt('a:1', 't1'), done)
    expect(backlogs()).toEqual([0, 0])
  })

  test('an abandoned turn takes only its own work away', () => {
    const { predictor, backlogs } = setUp()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input({ affinityKey: 'other' }))
    predictor.ended(turnAt('a:1', 't2'), { how: 'abandoned', response: undefined })
    expect(backlogs()).toEqual([1_000, 0])
  })

  test('a turn with nothing left to compute counts as one token', () => {
    const { predictor, backlogs } = setUp()
    predictor.forwarded(turnAt('a:1', 't1'), input(), 0)
    expect(backlogs()).toEqual([1, 0])
  })

  test('a turn behind one of its session is predicted to find what that one leaves', () => {
    const { predictor, backlogs } = setUp()
    predictor.forwarded(turnAt('a:1', 't1'), input(), 1_000)
    const residentTokens = predictor.residentTokens('s')
    predictor.routed(turnAt('a:1', 't2'), input({ promptTokens: 1_200, residentTokens }))
    expect(backlogs()).toEqual([1_200, 0])
  })

  test('a complete load is learnt, another one is not', () => {
    const { predictor, costs } = setUp()
    predictor.loadEnded(turnAt('b:1', 't1'), undefined)
    expect(costs.revision).toBe(0)
    predictor.loadEnded(turnAt('b:1', 't2'), { bytes: 5e6, loadMs: 200 })
    expect(costs.loadMs('m', 5e6)).toBeCloseTo(200)
  })

  test('a turn that did not wait is learnt, one that was predicted to wait is not', () => {
    const { predictor, costs } = setUp()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input({ affinityKey: 'other' }))
    predictor.ended(turnAt('a:1', 't2'), done)
    expect(costs.revision).toBe(0)
    predictor.ended(turnAt('a:1', 't1'), done)
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(200)
  })

  test('a turn that another process started is learnt', () => {
    const { predictor, costs } = setUp()
    predictor.ended(turnAt('a:1', 'unknown'), done)
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(200)
  })

  test('of more than 65,536 turns without a reported end, the oldest is dropped', () => {
    const { predictor, costs } = setUp()
    predictor.routed(turnAt('a:1', 'before'), input())
    for (let turn = 0; turn <= 65_536; turn += 1) predictor.forwarded(turnAt('a:1', `t${turn}`), input(), 1)
    predictor.ended(turnAt('a:1', 't1'), done)
    expect(costs.revision).toBe(0)
    predictor.ended(turnAt('a:1', 't0'), done)
    expect(costs.revision).toBe(1)
  })
})

describe('residentTokens', () => {
  test('returns what the last turn of a session left in each pod, until the session is forgotten', () => {
    const { predictor, resident } = setUp()
    predictor.forwarded(turnAt('a:1', 't1'), input(), 1_000)
    predictor.forwarded(turnAt('a:1', 't2'), input({ affinityKey: undefined }), 1_000)
    predictor.kept('s', 'b:1', 100)
    predictor.kept('s', 'b:1', 1_500)
    predictor.kept('s', 'b:1', 0)
    predictor.kept('other', 'a:1', 5)
    expect(resident('s')).toEqual({ 'a:1': 1_000, 'b:1': 1_500 })
    expect(['a:1', 'b:1'].map((pod) => predictor.sessionsAt(pod))).toEqual([2, 1])
    predictor.forget('s')
    expect(['a:1', 'b:1'].map((pod) => predictor.sessionsAt(pod))).toEqual([1, 0])
    expect([resident('s'), resident('other')]).toEqual([{}, { 'a:1': 5 }])
  })

  test('returns a map that does not change with later turns', () => {
    const { predictor } = setUp()
    predictor.kept('s', 'a:1', 100)
    const before = predictor.residentTokens('s')
    predictor.kept('s', 'a:1', 200)
    expect(Object.fromEntries(before)).toEqual({ 'a:1': 100 })
  })

  test('is empty for the session that was used least recently above maxSessions', () => {
    const { predictor, resident } = setUp()
    for (const session of ['s1', 's2']) predictor.kept(session, 'a:1', 1)
    predictor.residentTokens('s1')
    predictor.kept('s3', 'a:1', 1)
    expect(['s1', 's2', 's3'].map(resident)).toEqual([{ 'a:1': 1 }, {}, { 'a:1': 1 }])
    expect(predictor.sessionsAt('a:1')).toBe(2)
  })

  test('lists 16 pods of a session and drops the one that served it longest ago', () => {
    const { predictor, resident } = setUp()
    for (let pod = 0; pod < 16; pod += 1) predictor.kept('s', `pod-${pod}:1`, 5)
    for (const pod of ['pod-0:1', 'pod-16:1']) predictor.kept('s', pod, 5)
    expect(Object.keys(resident('s'))).toHaveLength(16)
    expect(resident('s')).not.toHaveProperty(['pod-1:1'])
    expect([predictor.sessionsAt('pod-1:1'), predictor.sessionsAt('pod-16:1')]).toEqual([0, 1])
  })
})
