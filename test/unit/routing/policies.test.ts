import { describe, expect, test } from '@jest/globals'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import { type Pods, podLoad } from '../../../src/routing/pod.ts'
import { createPolicies, type PolicyName, policyNames } from '../../../src/routing/policies.ts'
import { predictTurn } from '../../../src/routing/predicted-ttft.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { rendezvousOrder } from '../../../src/routing/session-affinity.ts'
import { podState, scriptedRandom, threePods } from './pod-state.ts'

/** A token takes 1 ms to compute and, at 1,000 bytes, 0.1 ms to load. */
const costs = createCostModel({ initialMsPerToken: 1, initialMsPerByte: 1e-4, initialLoadMs: 0 })
const stickiness = { factor: 2, margin: 3 }

type Turn = Partial<RoutingInput>

const createPick = (name: PolicyName, random: () => number = () => 0) => {
  const [policy] = createPolicies({ defaultPolicy: name, stickiness, random, costs })
  return (turn: Turn, pods: Pods): string =>
    policy.pick({ affinityKey: undefined, lastPod: undefined, model: 'm', ...turn }, pods).address
}

const holds = (tokens: Readonly<Record<string, number>>) => ({ residentTokens: new Map(Object.entries(tokens)) })
const stored = (tokens: number) => ({ stored: { tokens, bytes: tokens * 1_000 } })
const inFlight = (...turns: readonly number[]): Pods => threePods(...turns.map((count) => ({ inFlight: count })))
const backlogs = (...ms: readonly number[]): Pods => threePods(...ms.map((each) => ({ prefillBacklogMs: each })))
/** Pods whose engines report their use of memory, and all turns that run. */
const kvUsages = (usages: readonly number[], turns: readonly number[]): Pods =>
  threePods(
    ...usages.map((kvUsage, index) => {
      const running = turns[index] ?? 0
      return { kvUsage, running, inFlight: running, inFlightAtRead: running }
    }),
  )
const idle = threePods()

describe('createPolicies', () => {
  test.each(policyNames)('%s can be the default, and the others are there too', (name) => {
    const policies = createPolicies({ defaultPolicy: name, stickiness })
    expect(policies[0].name).toBe(name)
    expect(policies.map((one) => one.name).sort()).toEqual([...policyNames].sort())
  })

  test('Math.random is the default source of chance', () => {
    const [policy] = createPolicies({ defaultPolicy: 'random', stickiness })
    const turn = { affinityKey: undefined, lastPod: undefined }
    const picked = new Set(Array.from({ length: 300 }, () => policy.pick(turn, idle).address))
    expect([...picked].sort()).toEqual(['a:1', 'b:1', 'c:1'])
  })
})

test.each([
  ['an idle pod has no load', {}, 0],
  ['turns of this gateway count', { inFlight: 3 }, 3],
  ['requests of others count', { running: 2, waiting: 1 }, 3],
  ['turns in the report of the engine count once', { inFlight: 3, inFlightAtRead: 3, running: 3 }, 3],
  ['turns after the report count', { inFlight: 5, inFlightAtRead: 2, running: 6, waiting: 1 }, 10],
  ['turns that ended after the report do not count', { inFlight: 0, inFlightAtRead: 4, running: 4 }, 0],
  ['turns that had not reached the engine count', { inFlight: 4, inFlightAtRead: 4, running: 1 }, 4],
])('podLoad: %s', (_title, sketch, load) => {
  expect(podLoad(podState('a:1', sketch))).toBe(load)
})

// What a session holds where, for the tables below.
const session = { promptTokens: 5_000, ...stored(4_500), ...holds({ 'b:1': 4_500 }) }
const unstored = { ...session, stored: undefined }
const fresh = { promptTokens: 5_000 }
const otherSystem = { ...fresh, affinityKey: 'key', isForeign: true }
const twoHold = holds({ 'a:1': 10, 'c:1': 20 })
const [first = '', second = '', third = ''] = rendezvousOrder('key', idle).map((pod) => pod.address)
const keyed = (...turns: readonly [address: string, count: number][]): Pods => {
  const counts = new Map(turns)
  return inFlight(...['a:1', 'b:1', 'c:1'].map((address) => counts.get(address) ?? 0))
}

test.each<[PolicyName, string, Turn, Pods, string]>([
  ['predicted-ttft', 'stays where the session lies', session, backlogs(), 'b:1'],
  ['predicted-ttft', 'stays while the wait is shorter than the load', session, backlogs(0, 100, 0), 'b:1'],
  ['predicted-ttft', 'leaves when the wait is longer than the load', session, backlogs(50, 900, 0), 'c:1'],
  ['predicted-ttft', 'stays longer without a store', unstored, backlogs(0, 900, 0), 'b:1'],
  ['predicted-ttft', 'leaves a long queue without a store', unstored, backlogs(0, 9_000, 0), 'a:1'],
  ['predicted-ttft', 'stays when every queue is long', unstored, backlogs(40_000, 50_000, 40_000), 'b:1'],
  ['predicted-ttft', 'takes the shortest queue for a new session', fresh, backlogs(3, 2, 1), 'c:1'],
  ['predicted-ttft', 'takes the least loaded of equals', fresh, inFlight(2, 1, 2), 'b:1'],
  ['predicted-ttft', 'keeps a session of another system at its pod', otherSystem, keyed([first, 1]), first],
  [
    'predicted-ttft',
    'predicts a session of another system where its KV is known',
    { ...otherSystem, ...holds({ [second]: 4_500 }) },
    idle,
    second,
  ],
  ['prefix-cache', 'takes the pod that holds most', twoHold, inFlight(0, 0, 3), 'c:1'],
  ['prefix-cache', 'passes over an overloaded pod', twoHold, inFlight(0, 0, 4), 'a:1'],
  ['prefix-cache', 'takes the least loaded when all that hold it are overloaded', twoHold, inFlight(9, 0, 9), 'b:1'],
  ['prefix-cache', 'takes the less loaded of equals', holds({ 'a:1': 20, 'c:1': 20 }), inFlight(2, 0, 1), 'c:1'],
  ['prefix-cache', 'takes the least loaded for a new session', {}, inFlight(2, 1, 2), 'b:1'],
  ['prefix-cache', 'takes the last pod when nothing else is known', { lastPod: 'c:1' }, inFlight(0, 0, 1), 'c:1'],
  ['prefix-cache', 'takes the least loaded when the last pod is gone', { lastPod: 'x:1' }, inFlight(1, 0, 1), 'b:1'],
  ['least-kv-cache', 'takes the pod that uses least memory', {}, kvUsages([0.5, 0.2, 0.9], [0, 9, 0]), 'b:1'],
  ['least-kv-cache', 'takes the least loaded of equals', {}, kvUsages([0.2, 0.2, 0.9], [3, 1, 0]), 'b:1'],
  ['least-kv-cache', 'takes the least loaded without reports', {}, kvUsages([0, 0, 0], [1, 1, 0]), 'c:1'],
  [
    'least-kv-cache',
    'counts requests that wait, which hold no memory yet',
    {},
    threePods({ kvUsage: 0.4, running: 4, waiting: 6 }, { kvUsage: 0.6, running: 6 }, { kvUsage: 1 }),
    'b:1',
  ],
  ['least-request', 'counts requests of others', {}, threePods({ inFlight: 2 }, { running: 1 }, { waiting: 3 }), 'b:1'],
  ['session-affinity', 'stays with the last pod', { affinityKey: 'key', lastPod: 'b:1' }, idle, 'b:1'],
  ['session-affinity', 'stays up to the margin', { lastPod: 'b:1' }, inFlight(0, 3, 0), 'b:1'],
  ['session-affinity', 'leaves above the margin', { affinityKey: 'key', lastPod: 'b:1' }, inFlight(0, 4, 1), 'a:1'],
  ['session-affinity', 'stays up to the factor when all are busy', { lastPod: 'b:1' }, inFlight(10, 23, 11), 'b:1'],
  ['session-affinity', 'leaves above the factor when all are busy', { lastPod: 'b:1' }, inFlight(12, 24, 10), 'c:1'],
  ['session-affinity', 'follows the key without a last pod', { affinityKey: 'key' }, idle, first],
  [
    'session-affinity',
    'follows the key when the last pod is gone',
    { affinityKey: 'key', lastPod: 'x:1' },
    idle,
    first,
  ],
  ['session-affinity', 'takes the next pod of the key', { affinityKey: 'key' }, keyed([first, 4]), second],
  ['session-affinity', 'takes the third pod of the key', { affinityKey: 'key' }, keyed([first, 9], [second, 4]), third],
  ['session-affinity', 'takes the least loaded without key and last pod', {}, inFlight(1, 2, 0), 'c:1'],
])('%s %s', (name, _title, turn, pods, picked) => {
  expect(createPick(name)(turn, pods)).toBe(picked)
})

test.each(['predicted-ttft', 'prefix-cache', 'session-affinity'] as const)(
  '%s picks the pod that served the session last when the prefix index has no entry',
  (name) => {
    expect(createPick(name)({ ...fresh, ...stored(4_500), lastPod: 'c:1', ...holds({}) }, idle)).toBe('c:1')
  },
)

test.each(['session-affinity', 'predicted-ttft'] as const)('%s spreads affinity keys, each to one pod', (name) => {
  const pickAll = (chance: number): readonly string[] => {
    const pick = createPick(name, () => chance)
    return Array.from({ length: 600 }, (_none, key) => pick({ affinityKey: `key-${key}` }, idle))
  }
  const picked = pickAll(0)
  expect(pickAll(0.99)).toEqual(picked)
  const counts = ['a:1', 'b:1', 'c:1'].map((address) => picked.filter((each) => each === address).length)
  expect(Math.min(...counts)).toBeGreaterThan(160)
})

test.each<[PolicyName, Pods, readonly number[], readonly string[]]>([
  ['random', idle, [0, 0.34, 0.999999], ['a:1', 'b:1', 'c:1']],
  ['predicted-ttft', idle, [0, 0.4, 0.9], ['a:1', 'b:1', 'c:1']],
  ['least-request', inFlight(0, 1, 0), [0, 0.6, 0], ['a:1', 'c:1', 'a:1']],
])('%s spreads turns over equal pods by chance', (name, pods, numbers, picked) => {
  const pick = createPick(name, scriptedRandom(...numbers))
  expect(numbers.map(() => pick({ promptTokens: 100 }, pods))).toEqual(picked)
})

test('round-robin goes through the pods in their order, also when one has gone', () => {
  const pick = createPick('round-robin')
  const two: Pods = [podState('a:1'), podState('b:1')]
  const picked = [idle, idle, idle, idle, two, two].map((pods) => pick({}, pods))
  expect(picked).toEqual(['a:1', 'b:1', 'c:1', 'a:1', 'b:1', 'a:1'])
})

test('least-kv-cache counts turns since the last report, so that they do not all reach one pod', () => {
  const turns = new Map([0, 1, 2].map((index) => [`${'abc'[index]}:1`, 0]))
  const pick = createPick('least-kv-cache')
  for (let turn = 0; turn < 30; turn += 1) {
    const since = [...turns.values()]
    const state = (index: number) => ({
      kvUsage: 0.2 + index / 100,
      running: 4,
      inFlightAtRead: 4,
      inFlight: 4 + (since[index] ?? 0),
    })
    const picked = pick({}, threePods(state(0), state(1), state(2)))
    turns.set(picked, (turns.get(picked) ?? 0) + 1)
  }
  expect([...turns.values()]).toEqual([10, 10, 10])
})

test.each<[string, Turn, Parameters<typeof podState>[1], number]>([
  ['computes all of a new session', {}, {}, 5_000],
  ['waits for the queue first', {}, { prefillBacklogMs: 700 }, 5_700],
  ['computes the rest of a resident session', holds({ 'a:1': 4_000 }), {}, 1_000],
  ['loads what is stored', stored(4_000), {}, 1_400],
  ['loads while the queue runs', stored(4_000), { prefillBacklogMs: 300 }, 1_400],
  ['waits for a queue that is longer than the load', stored(4_000), { prefillBacklogMs: 900 }, 1_900],
  ['loads only what the pod lacks', { ...stored(4_000), ...holds({ 'a:1': 3_000 }) }, {}, 1_100],
  ['takes the last pod to hold what is stored', { ...stored(4_000), lastPod: 'a:1' }, {}, 1_000],
  ['counts waiting requests of others as turns like this', {}, { waiting: 2 }, 15_000],
  ['does not count its own waiting turns twice', {}, { waiting: 2, inFlight: 2, inFlightAtRead: 2 }, 5_000],
])('predictTurn %s', (_title, change, pod, ttftMs) => {
  const turn = { affinityKey: 's', lastPod: undefined, model: 'm', promptTokens: 5_000, ...change }
  expect(predictTurn(costs, turn, podState('a:1', pod)).ttftMs).toBeCloseTo(ttftMs)
})
