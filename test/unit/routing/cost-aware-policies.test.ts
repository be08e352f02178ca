import { describe, expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import type { PodState, Pods } from '../../../src/routing/pod.ts'
import { createPolicies, type PolicyName } from '../../../src/routing/policies.ts'
import { predictTurn } from '../../../src/routing/predicted-ttft.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { podState, scriptedRandom } from './pod-state.ts'

/** A token takes 1 ms to compute and, at 1,000 bytes, 0.1 ms to load. */
const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 0 })

const pick = (name: PolicyName, turn: Partial<RoutingInput>, pods: Pods, random: () => number = () => 0): string => {
  const [policy] = createPolicies({ defaultPolicy: name, stickiness: { factor: 2, margin: 3 }, random, costs })
  return policy.pick({ affinityKey: undefined, lastPod: undefined, model: 'm', ...turn }, pods).address
}

const holds = (tokens: Readonly<Record<string, number>>) => ({ residentTokens: new Map(Object.entries(tokens)) })
const stored = (tokens: number) => ({ stored: { tokens, bytes: tokens * 1_000 } })

test('predicted-ttft leads turns of which only an affinity key is known to the same pod', () => {
  const pods: Pods = [podState('a:1'), podState('b:1'), podState('c:1')]
  const pickBy = (affinityKey: string, chance: number) =>
    pick('predicted-ttft', { affinityKey, model: undefined }, pods, () => chance)
  const keys = Array.from({ length: 50 }, (_none, index) => `key ${index}`)
  expect(keys.map((key) => pickBy(key, 0))).toEqual(keys.map((key) => pickBy(key, 0.99)))
  expect(new Set(keys.map((key) => pickBy(key, 0))).size).toBe(3)
})

describe('predictTurn', () => {
  const session = { affinityKey: 's', lastPod: undefined, model: 'm', promptTokens: 5_000 }
  test.each([
    { name: 'computes all of a new session', turn: {}, pod: {}, ttftMs: 5_000 },
    {
      name: 'computes what an unknown prompt is taken to be',
      turn: { promptTokens: undefined },
      pod: {},
      ttftMs: 1_024,
    },
    { name: 'waits for the queue first', turn: {}, pod: { prefillBacklogMs: 700 }, ttftMs: 5_700 },
    { name: 'computes the rest of a resident one', turn: holds({ 'a:1': 4_000 }), pod: {}, ttftMs: 1_000 },
    { name: 'loads what is stored', turn: stored(4_000), pod: {}, ttftMs: 1_400 },
    { name: 'loads while the queue runs', turn: stored(4_000), pod: { prefillBacklogMs: 300 }, ttftMs: 1_400 },
    {
      name: 'waits for a queue that is longer than the load',
      turn: stored(4_000),
      pod: { prefillBacklogMs: 900 },
      ttftMs: 1_900,
    },
    { name: 'loads only what lacks', turn: { ...stored(4_000), ...holds({ 'a:1': 3_000 }) }, pod: {}, ttftMs: 1_100 },
    {
      name: 'takes the last pod to hold what is stored',
      turn: { ...stored(4_000), lastPod: 'a:1' },
      pod: {},
      ttftMs: 1_000,
    },
    { name: 'counts others that wait as turns like this', turn: {}, pod: { waiting: 2 }, ttftMs: 15_000 },
    {
      name: 'does not count its own twice',
      turn: {},
      pod: { waiting: 2, inFlight: 2, inFlightAtRead: 2 },
      ttftMs: 5_000,
    },
  ])('$name', ({ turn, pod, ttftMs }) => {
    expect(predictTurn(costs, { ...session, ...turn }, podState('a:1', pod)).ttftMs).toBeCloseTo(ttftMs)
  })
})

describe('predicted-ttft', () => {
  const session = { promptTokens: 5_000, ...stored(4_500), ...holds({ 'b:1': 4_500 }) }
  const backlogs = (a: number, b: number, c: number): Pods => [
    podState('a:1', { prefillBacklogMs: a }),
    podState('b:1', { prefillBacklogMs: b }),
    podState('c:1', { prefillBacklogMs: c }),
  ]

  test.each([
    { name: 'stays where the session lies', turn: session, pods: backlogs(0, 0, 0), picked: 'b:1' },
    { name: 'stays while waiting is shorter than loading', turn: session, pods: backlogs(0, 100, 0), picked: 'b:1' },
    { name: 'leaves when waiting is longer than loading', turn: session, pods: backlogs(50, 900, 0), picked: 'c:1' },
    {
      name: 'stays longer where there is no store',
      turn: { ...session, stored: undefined },
      pods: backlogs(0, 900, 0),
      picked: 'b:1',
    },
    {
      name: 'leaves in the end, also without a store',
      turn: { ...session, stored: undefined },
      pods: backlogs(0, 9_000, 0),
      picked: 'a:1',
    },
    {
      name: 'stays for good where every queue is long: computing twice would hold up all',
      turn: { ...session, stored: undefined },
      pods: backlogs(40_000, 50_000, 40_000),
      picked: 'b:1',
    },
    {
      name: 'takes the shortest queue for a new session',
      turn: { promptTokens: 5_000 },
      pods: backlogs(3, 2, 1),
      picked: 'c:1',
    },
    {
      name: 'takes the least loaded of equals',
      turn: { promptTokens: 5_000 },
      pods: [
        podState('a:1', { inFlight: 2 }),
        podState('b:1', { inFlight: 1 }),
        podState('c:1', { inFlight: 2 }),
      ] as Pods,
      picked: 'b:1',
    },
  ])('$name', ({ turn, pods, picked }) => {
    expect(pick('predicted-ttft', turn, pods)).toBe(picked)
  })

  test.each(['predicted-ttft', 'prefix-cache', 'session-affinity'] as const)(
    '%s picks the pod that served the session last when the prefix index has no entry',
    (name) => {
      const turn = { promptTokens: 5_000, ...stored(4_500), lastPod: 'c:1', ...holds({}) }
      expect(pick(name, turn, backlogs(0, 0, 0))).toBe('c:1')
    },
  )

  test('spreads over equals', () => {
    const random = scriptedRandom(0, 0.4, 0.9)
    const pods = backlogs(0, 0, 0)
    expect([1, 2, 3].map(() => pick('predicted-ttft', { promptTokens: 100 }, pods, random))).toEqual([
      'a:1',
      'b:1',
      'c:1',
    ])
  })
})

describe('prefix-cache', () => {
  const loaded = (a: number, b: number, c: number): Pods => [
    podState('a:1', { inFlight: a }),
    podState('b:1', { inFlight: b }),
    podState('c:1', { inFlight: c }),
  ]

  test.each([
    {
      name: 'picks the pod that holds most',
      turn: holds({ 'a:1': 10, 'c:1': 20 }),
      pods: loaded(0, 0, 3),
      picked: 'c:1',
    },
    {
      name: 'passes over an overloaded one',
      turn: holds({ 'a:1': 10, 'c:1': 20 }),
      pods: loaded(0, 0, 4),
      picked: 'a:1',
    },
    {
      name: 'picks the least loaded where all that hold it are overloaded',
      turn: holds({ 'a:1': 10, 'c:1': 20 }),
      pods: loaded(9, 0, 9),
      picked: 'b:1',
    },
    {
      name: 'picks the less loaded of those that hold as much',
      turn: holds({ 'a:1': 20, 'c:1': 20 }),
      pods: loaded(2, 0, 1),
      picked: 'c:1',
    },
    { name: 'picks the least loaded for a new session', turn: {}, pods: loaded(2, 1, 2), picked: 'b:1' },
    {
      name: 'takes the last pod where nothing else is known',
      turn: { lastPod: 'c:1' },
      pods: loaded(0, 0, 1),
      picked: 'c:1',
    },
    {
      name: 'picks the least loaded where the last pod is gone',
      turn: { lastPod: 'gone:1' },
      pods: loaded(1, 0, 1),
      picked: 'b:1',
    },
  ])('$name', ({ turn, pods, picked }) => {
    expect(pick('prefix-cache', turn, pods)).toBe(picked)
  })
})

describe('least-kv-cache', () => {
  test('counts turns since the last report, so that they do not all reach one pod', () => {
    const turnsSince = [0, 0, 0]
    for (let turn = 0; turn < 30; turn += 1) {
      const state = (address: string, index: number): PodState =>
        podState(address, {
          kvUsage: 0.2 + index / 100,
          running: 4,
          inFlightAtRead: 4,
          inFlight: 4 + (turnsSince[index] ?? 0),
        })
      const picked = pick('least-kv-cache', {}, [state('a:1', 0), state('b:1', 1), state('c:1', 2)])
      const index = ['a:1', 'b:1', 'c:1'].indexOf(picked)
      turnsSince[index] = (turnsSince[index] ?? 0) + 1
    }
    expect(turnsSince).toEqual([10, 10, 10])
  })

  test('counts requests that wait, which hold no memory yet', () => {
    const pods: Pods = [
      podState('a:1', { kvUsage: 0.4, running: 4, waiting: 6 }),
      podState('b:1', { kvUsage: 0.6, running: 6 }),
    ]
    expect(pick('least-kv-cache', {}, pods)).toBe('b:1')
  })

  test.each([
    {
      name: 'picks the pod that uses least of its memory',
      usages: [0.5, 0.2, 0.9],
      inFlight: [0, 9, 0],
      picked: 'b:1',
    },
    { name: 'picks the least loaded of equals', usages: [0.2, 0.2, 0.9], inFlight: [3, 1, 0], picked: 'b:1' },
    { name: 'picks the least loaded where engines say nothing', usages: [0, 0, 0], inFlight: [1, 1, 0], picked: 'c:1' },
  ])('$name', ({ usages, inFlight, picked }) => {
    const state = (address: string, index: number): PodState => {
      const turns = inFlight[index] ?? 0
      return podState(address, { kvUsage: usages[index] ?? 0, inFlight: turns, inFlightAtRead: turns, running: turns })
    }
    expect(pick('least-kv-cache', {}, [state('a:1', 0), state('b:1', 1), state('c:1', 2)])).toBe(picked)
  })
})
