import { describe, expect, test } from '@jest/globals'
import type { PodState } from '../../../src/routing/pod.ts'
import { createRouter, type RouteOutcome, type RoutingPolicy } from '../../../src/routing/router.ts'
import { podState } from './pod-state.ts'

/** Picks the pod at an index of those it receives. */
const picking = (name: string, index: number): RoutingPolicy => ({
  name,
  pick: (_turn, pods) => pods[index] ?? pods[0],
})

const route = (pods: readonly PodState[], policyName?: string): RouteOutcome =>
  createRouter({ source: { pods: () => pods }, policies: [picking('first', 0), picking('second', 1)] }).route(
    { affinityKey: 'key', lastPod: undefined },
    policyName,
  )

const podsAt = (...addresses: readonly string[]): readonly PodState[] => addresses.map((address) => podState(address))
const unready = (address: string): PodState => podState(address, { ready: false })
const [b, d] = podsAt('b:1', 'd:1') as [PodState, PodState]

describe('createRouter', () => {
  test.each<[string, readonly PodState[], string | undefined, string, readonly string[]]>([
    ['asks the first policy by default', podsAt('a:1', 'b:1'), undefined, 'a:1', ['b:1']],
    ['asks the policy that the request names', podsAt('a:1', 'b:1'), 'second', 'b:1', ['a:1']],
    ['ignores pods that are not ready', [unready('a:1'), b, unready('c:1'), d], undefined, 'b:1', ['d:1']],
    ['orders equal fallbacks in a circle', podsAt('a:1', 'b:1', 'c:1'), 'second', 'b:1', ['c:1', 'a:1']],
    [
      'names the three least loaded pods as fallbacks',
      [
        podState('a:1', { inFlight: 9 }),
        podState('e:1', { inFlight: 4 }),
        podState('b:1', { inFlight: 2 }),
        podState('c:1', { running: 1 }),
        podState('d:1', { waiting: 3 }),
      ],
      undefined,
      'a:1',
      ['c:1', 'b:1', 'd:1'],
    ],
  ])('%s', (_title, pods, policy, pod, fallbacks) => {
    expect(route(pods, policy)).toEqual({ kind: 'routed', policy: policy ?? 'first', pod, fallbacks })
  })

  test.each(['', 'third', 'First', '__proto__'])('"%s" is no policy, also when no pod is ready', (name) => {
    const unknown = { kind: 'unknown-policy', known: ['first', 'second'] }
    expect([route([b], name), route([], name)]).toEqual([unknown, unknown])
  })

  test.each([
    ['there is none', []],
    ['none is ready', [unready('a:1'), unready('b:1')]],
  ])('routes to no pod when %s', (_title, pods) => {
    expect(route(pods)).toEqual({ kind: 'no-ready-pod' })
  })
})
