import { describe, expect, test } from '@jest/globals'
import { createCostProfile } from '../../../src/routing/cost-profile/cost-profile.ts'
import type { RoutingInput } from '../../../src/routing/routing-policy.ts'
import { createTtftPredictor, type ForecastTurn, type TtftPredictor } from '../../../src/routing/ttft-predictor.ts'
import { podState } from './pod-state.ts'

/** A token takes 1 ms to compute, a million bytes 100 ms to load. */
const forecastWithClock = () => {
  let nowMs = 0
  const costs = createCostProfile({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 0 })
  const forecast = createTtftPredictor({
    source: { pods: () => [podState('a:1', { inFlight: 3 }), podState('b:1')] },
    costs,
    turnLeaseMs: 60_000,
    nowMs: () => nowMs,
    maxSessionsPerPod: 100,
  })
  const backlogs = (field: 'prefillBacklogMs' | 'loadBacklogMs') => forecast.pods().map((pod) => pod[field])
  return {
    forecast,
    costs,
    prefills: () => backlogs('prefillBacklogMs'),
    loads: () => backlogs('loadBacklogMs'),
    pass: (milliseconds: number): void => {
      nowMs += milliseconds
    },
  }
}

const turnAt = (pod: string, turnId: string) => ({ turnId, pod, model: 'm' })

const routing = (change: Partial<RoutingInput> = {}): RoutingInput => ({
  affinityKey: 's',
  lastPod: undefined,
  model: 'm',
  promptTokens: 1_000,
  residentTokens: new Map(),
  ...change,
})

describe('the forecast', () => {
  test('keeps what the source says of its pods', () => {
    expect(forecastWithClock().forecast.pods()[0]).toEqual(
      podState('a:1', { inFlight: 3, inFlightAtRead: 0, prefillBacklogMs: 0, loadBacklogMs: 0 }),
    )
  })

  test('counts a turn from when it is routed, and exactly from when it is forwarded', () => {
    const { forecast, prefills, pass } = forecastWithClock()
    forecast.routed(turnAt('a:1', 't1'), routing())
    expect(prefills()).toEqual([1_000, 0])
    forecast.forwarded(turnAt('a:1', 't1'), 400)
    expect(prefills()).toEqual([400, 0])
    pass(300)
    expect(prefills()).toEqual([100, 0])
    forecast.ended(turnAt('a:1', 't1'), { sessionKey: 's', how: 'done', answer: undefined })
    expect(prefills()).toEqual([0, 0])
  })

  test('knows that a turn behind another one of its session will find what that one leaves', () => {
    const { forecast, prefills } = forecastWithClock()
    forecast.routed(turnAt('a:1', 't1'), routing())
    forecast.forwarded(turnAt('a:1', 't1'), 1_000)
    const second = routing({ promptTokens: 1_200, residentTokens: forecast.residentTokens('s') })
    forecast.routed(turnAt('a:1', 't2'), second)
    forecast.forwarded(turnAt('a:1', 't2'), 1_200)
    expect(prefills()).toEqual([1_200, 0])
  })

  test.each([
    { name: 'its first', ahead: [], tokens: 400 },
    { name: 'behind one of its session', ahead: ['t1'], tokens: 1_200 },
    { name: 'behind one of its session, which finds more than that one leaves', ahead: ['t1'], tokens: 50 },
    { name: 'one with nothing left to compute', ahead: [], tokens: 0 },
  ])('a turn that is sent at once counts as one that is routed and forwarded: $name', ({ ahead, tokens }) => {
    const outcomeOf = (begin: (forecast: TtftPredictor, turn: ForecastTurn, facts: RoutingInput) => void) => {
      const { forecast, prefills } = forecastWithClock()
      for (const turnId of ahead) {
        forecast.routed(turnAt('a:1', turnId), routing())
        forecast.forwarded(turnAt('a:1', turnId), 1_000)
      }
      const facts = routing({ promptTokens: 1_200, residentTokens: forecast.residentTokens('s') })
      begin(forecast, turnAt('a:1', 't9'), facts)
      const begun = prefills()
      // Its pod lacks more than was thought.
      forecast.forwarded(turnAt('a:1', 't9'), 1_100)
      return { begun, corrected: prefills(), resident: forecast.residentTokens('s') }
    }
    expect(outcomeOf((forecast, turn, facts) => forecast.sent(turn, facts, tokens))).toEqual(
      outcomeOf((forecast, turn, facts) => {
        forecast.routed(turn, facts)
        forecast.forwarded(turn, tokens)
      }),
    )
  })

  test('believes what is found where no turn is ahead', () => {
    const { forecast, prefills, pass } = forecastWithClock()
    forecast.routed(turnAt('a:1', 't1'), routing())
    forecast.ended(turnAt('a:1', 't1'), { sessionKey: 's', how: 'done', answer: undefined })
    pass(5_000)
    forecast.routed(turnAt('a:1', 't2'), routing({ promptTokens: 1_200, residentTokens: forecast.residentTokens('s') }))
    forecast.forwarded(turnAt('a:1', 't2'), 1_200)
    expect(prefills()).toEqual([1_200, 0])
  })

  test('counts loads until they are over, and learns from those that came whole', () => {
    const { forecast, loads, costs } = forecastWithClock()
    forecast.loadStarted(turnAt('b:1', 't1'), 5e6)
    forecast.loadStarted(turnAt('b:1', 't2'), 5e6)
    expect(loads()).toEqual([0, 1_000])
    forecast.loadEnded(turnAt('b:1', 't1'), undefined)
    expect(loads()).toEqual([0, 500])
    expect(costs.revision).toBe(0)
    forecast.loadEnded(turnAt('b:1', 't2'), { bytes: 5e6, loadMs: 700 })
    expect(loads()).toEqual([0, 0])
    expect(costs.loadMs('m', 5e6)).toBeCloseTo(200)
  })

  test('learns what computing costs, less what the turn had to wait for others', () => {
    const { forecast, costs } = forecastWithClock()
    forecast.routed(turnAt('a:1', 't1'), routing({ affinityKey: 'other' }))
    forecast.routed(turnAt('a:1', 't2'), routing())
    forecast.ended(turnAt('a:1', 't2'), {
      sessionKey: 's',
      how: 'done',
      answer: { computedTokens: 1_000, ttfbMs: 1_500 },
    })
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(500)
  })

  test('learns from turns that another process began, too', () => {
    const { forecast, costs } = forecastWithClock()
    const answer = { computedTokens: 1_000, ttfbMs: 200 }
    forecast.ended(turnAt('a:1', 'unknown'), { sessionKey: 's', how: 'done', answer })
    expect(costs.recomputeMs('m', 1_000)).toBeCloseTo(200)
  })

  test('remembers where sessions lie until they are forgotten', () => {
    const { forecast } = forecastWithClock()
    forecast.routed(turnAt('a:1', 't1'), routing())
    forecast.routed(turnAt('a:1', 't2'), routing({ affinityKey: undefined }))
    forecast.kept('s', 'b:1', 1_500)
    expect(Object.fromEntries(forecast.residentTokens('s'))).toEqual({ 'a:1': 1_000, 'b:1': 1_500 })
    forecast.forget('s')
    expect(forecast.residentTokens('s').size).toBe(0)
  })
})
