import { describe, expect, test } from '@jest/globals'
import type { Pods } from '../../../src/routing/pod.ts'
import { createPolicies, type PolicyName, policyNames } from '../../../src/routing/policies.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { rendezvousOrder } from '../../../src/routing/session-affinity.ts'
import { podState, scriptedRandom } from './pod-state.ts'

const anyTurn: RoutingInput = { affinityKey: undefined, lastPod: undefined }

const idle: Pods = [podState('a:1'), podState('b:1'), podState('c:1')]

const policy = (name: PolicyName, random: () => number = () => 0) => {
  const [chosen] = createPolicies({ defaultPolicy: name, stickiness: { factor: 2, margin: 3 }, random })
  return chosen
}

const picks = (name: PolicyName, pods: Pods, times: number, random?: () => number): readonly string[] => {
  const chosen = policy(name, random)
  return Array.from({ length: times }, () => chosen.pick(anyTurn, pods).address)
}

describe('createPolicies', () => {
  test.each(policyNames)('%s can be the default, and the others are there too', (name) => {
    const policies = createPolicies({ defaultPolicy: name, stickiness: { factor: 2, margin: 3 } })
    expect(policies[0].name).toBe(name)
    expect(policies.map((one) => one.name).sort()).toEqual([...policyNames].sort())
  })

  test('random uses Math.random by default', () => {
    const [chosen] = createPolicies({ defaultPolicy: 'random', stickiness: { factor: 2, margin: 3 } })
    const seen = new Set(Array.from({ length: 300 }, () => chosen.pick(anyTurn, idle).address))
    expect([...seen].sort()).toEqual(['a:1', 'b:1', 'c:1'])
  })
})

describe('random', () => {
  test.each([
    { number: 0, address: 'a:1' },
    { number: 0.34, address: 'b:1' },
    { number: 0.999999, address: 'c:1' },
  ])('$number means $address', ({ number, address }) => {
    expect(picks('random', idle, 1, () => number)).toEqual([address])
  })
})

describe('round-robin', () => {
  test('goes through the pods in their order, again and again', () => {
    expect(picks('round-robin', idle, 5)).toEqual(['a:1', 'b:1', 'c:1', 'a:1', 'b:1'])
  })

  test('goes on when a pod has gone', () => {
    const chosen = policy('round-robin')
    const two: Pods = [podState('a:1'), podState('b:1')]
    const seen = [idle, idle, idle, two, two, two].map((pods) => chosen.pick(anyTurn, pods).address)
    expect(seen).toEqual(['a:1', 'b:1', 'c:1', 'b:1', 'a:1', 'b:1'])
  })
})

describe('least-request', () => {
  test('picks the pod with the fewest requests, ours and those of others', () => {
    const pods: Pods = [
      podState('a:1', { inFlight: 2 }),
      podState('b:1', { running: 1 }),
      podState('c:1', { waiting: 3 }),
    ]
    expect(picks('least-request', pods, 2)).toEqual(['b:1', 'b:1'])
  })

  test('spreads over equals', () => {
    const pods: Pods = [podState('a:1'), podState('b:1', { inFlight: 1 }), podState('c:1')]
    expect(picks('least-request', pods, 4, scriptedRandom(0, 0.6))).toEqual(['a:1', 'c:1', 'a:1', 'c:1'])
  })
})

describe('session-affinity', () => {
  const order = rendezvousOrder('key', idle).map((pod) => pod.address)
  const [first = '', second = '', third = ''] = order
  const loaded = (loads: Readonly<Record<string, number>>): Pods => [
    podState('a:1', { inFlight: loads['a:1'] ?? 0 }),
    podState('b:1', { inFlight: loads['b:1'] ?? 0 }),
    podState('c:1', { inFlight: loads['c:1'] ?? 0 }),
  ]

  test.each([
    { name: 'stays with the last pod', resident: 'b:1', key: 'key', loads: {}, picked: 'b:1' },
    { name: 'stays up to the margin', resident: 'b:1', key: 'key', loads: { 'b:1': 3 }, picked: 'b:1' },
    {
      name: 'leaves for the least loaded above the margin',
      resident: 'b:1',
      key: 'key',
      loads: { 'a:1': 0, 'b:1': 4, 'c:1': 1 },
      picked: 'a:1',
    },
    {
      name: 'stays up to the factor when all are busy',
      resident: 'b:1',
      key: 'key',
      loads: { 'a:1': 10, 'b:1': 23, 'c:1': 11 },
      picked: 'b:1',
    },
    {
      name: 'leaves above the factor when all are busy',
      resident: 'b:1',
      key: 'key',
      loads: { 'a:1': 12, 'b:1': 24, 'c:1': 10 },
      picked: 'c:1',
    },
    { name: 'follows the key when the last pod is gone', resident: 'gone:1', key: 'key', loads: {}, picked: first },
    { name: 'follows the key without a last pod', resident: undefined, key: 'key', loads: {}, picked: first },
    {
      name: 'takes the next of the key when its first is overloaded',
      resident: undefined,
      key: 'key',
      loads: { [first]: 4 },
      picked: second,
    },
    {
      name: 'takes the last of the key when the others are overloaded',
      resident: undefined,
      key: 'key',
      loads: { [first]: 9, [second]: 4 },
      picked: third,
    },
    {
      name: 'takes the least loaded without either',
      resident: undefined,
      key: undefined,
      loads: { 'a:1': 1, 'b:1': 2 },
      picked: 'c:1',
    },
  ])('$name', ({ resident, key, loads, picked }) => {
    const chosen = policy('session-affinity')
    expect(chosen.pick({ affinityKey: key, lastPod: resident }, loaded(loads)).address).toBe(picked)
  })

  test('many keys spread over all pods', () => {
    const chosen = policy('session-affinity')
    const counts = new Map<string, number>()
    for (let key = 0; key < 3_000; key += 1) {
      const { address } = chosen.pick({ affinityKey: `key-${key}`, lastPod: undefined }, idle)
      counts.set(address, (counts.get(address) ?? 0) + 1)
    }
    for (const address of ['a:1', 'b:1', 'c:1']) expect(counts.get(address)).toBeGreaterThan(900)
  })
})
