import { describe, expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { createTtftPredictor } from '../../../src/routing/ttft-predictor.ts'
import { podState } from './pod-state.ts'

const leaseMs = 60_000

/** A token takes 1 ms to compute, a million bytes 100 ms to load. */
const predictorWithClock = () => {
  let nowMs = 0
  const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 0 })
  const predictor = createTtftPredictor({
    source: { pods: () => [podState('a:1', { inFlight: 3 }), podState('b:1')] },
    costs,
    turnLeaseMs: leaseMs,
    nowMs: () => nowMs,
    maxSessions: 100,
  })
  return {
    predictor,
    costs,
    backlogs: () => predictor.pods().map((pod) => pod.prefillBacklogMs),
    pass: (milliseconds: number): void => {
      nowMs += milliseconds
    },
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

const done = { how: 'done', response: undefined } as const
const response = { computedTokens: 1_000, ttfbMs: 200 }

describe('createTtftPredictor', () => {
  test('pods keep the state of the source', () => {
    expect(predictorWithClock().predictor.pods()[0]).toEqual(podState('a:1', { inFlight: 3, prefillBacklogMs: 0 }))
  })

  test('a turn counts with its prediction when routed, with the rest of its prompt when forwarded, until it ends', () => {
    const { predictor, backlogs, pass } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    expect(backlogs()).toEqual([1_000, 0])
    predictor.forwarded(turnAt('a:1', 't1'), 400)
    expect(backlogs()).toEqual([400, 0])
    pass(300)
    expect(backlogs()).toEqual([100, 0])
    predictor.ended(turnAt('a:1', 't1'), done)
    expect(backlogs()).toEqual([0, 0])
  })

  test('an abandoned turn takes only its own work away', () => {
    const { predictor, backlogs } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input({ affinityKey: 'other' }))
    predictor.ended(turnAt('a:1', 't2'), { how: 'abandoned', response: undefined })
    expect(backlogs()).toEqual([1_000, 0])
  })

  test('a turn with nothing left to compute counts as one token', () => {
    const { predictor, backlogs } = predictorWithClock()
    predictor.forwarded(turnAt('a:1', 't1'), 0)
    expect(backlogs()).toEqual([1, 0])
  })

  test('a turn behind one of its session is predicted to find what that one leaves', () => {
    const { predictor, backlogs } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    const residentTokens = predictor.residentTokens('s')
    predictor.routed(turnAt('a:1', 't2'), input({ promptTokens: 1_200, residentTokens }))
    expect(backlogs()).toEqual([1_200, 0])
  })

  test('a complete load is learnt, another one is not', () => {
    const { predictor, costs } = predictorWithClock()
    predictor.loadEnded(turnAt('b:1', 't1'), undefined)
    expect(costs.revision).toBe(0)
    predictor.loadEnded(turnAt('b:1', 't2'), { bytes: 5e6, loadMs: 200 })
    expect(costs.loadMs('m', 5e6)).toBeCloseTo(200)
  })

  test('a turn that did not wait is learnt, one that was predicted to wait is not', () => {
    const { predictor, costs } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input({ affinityKey: 'other' }))
    predictor.ended(turnAt('a:1', 't2'), { how: 'done', response: { computedTokens: 1_000, ttfbMs: 1_900 } })
    expect(costs.revision).toBe(0)
    predictor.ended(turnAt('a:1', 't1'), { how: 'done', response })
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(200)
  })

  test('a turn that another process started is learnt', () => {
    const { predictor, costs } = predictorWithClock()
    predictor.ended(turnAt('a:1', 'unknown'), { how: 'done', response })
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(200)
  })

  test('a turn whose end is not reported is dropped after its lease', () => {
    const { predictor, costs, pass } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input())
    pass(leaseMs)
    predictor.routed(turnAt('b:1', 't3'), input())
    predictor.ended(turnAt('a:1', 't2'), { how: 'done', response })
    expect(costs.revision).toBe(1)
  })

  test('the pods of a session are known until it is forgotten', () => {
    const { predictor } = predictorWithClock()
    predictor.routed(turnAt('a:1', 't1'), input())
    predictor.routed(turnAt('a:1', 't2'), input({ affinityKey: undefined }))
    predictor.kept('s', 'b:1', 1_500)
    expect(Object.fromEntries(predictor.residentTokens('s'))).toEqual({ 'a:1': 1_000, 'b:1': 1_500 })
    predictor.forget('s')
    expect(predictor.residentTokens('s').size).toBe(0)
  })
})
