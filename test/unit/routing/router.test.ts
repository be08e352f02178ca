import { describe, expect, test } from '@jest/globals'
import type { PodState } from '../../../src/routing/pod.ts'
import { createRouter, type RoutingInput, type RoutingPolicy } from '../../../src/routing/router.ts'
import { podState } from './pod-state.ts'

const turn: RoutingInput = { affinityKey: 'key', lastPod: undefined }

/** Picks the pod at an index of those it is given. */
const picking = (name: string, index: number): RoutingPolicy => ({
  name,
  pick: (_turn, pods) => pods[index] ?? pods[0],
})

const routerOver = (...pods: readonly PodState[]) =>
  createRouter({ source: { pods: () => pods }, policies: [picking('first', 0), picking('second', 1)] })

describe('createRouter', () => {
  test('asks the first policy unless the request names one', () => {
    const router = routerOver(podState('a:1'), podState('b:1'))
    expect(router.route(turn, undefined)).toEqual({ kind: 'routed', policy: 'first', pod: 'a:1', fallbacks: ['b:1'] })
    expect(router.route(turn, 'first')).toEqual({ kind: 'routed', policy: 'first', pod: 'a:1', fallbacks: ['b:1'] })
    expect(router.route(turn, 'second')).toEqual({ kind: 'routed', policy: 'second', pod: 'b:1', fallbacks: ['a:1'] })
  })

  test.each(['', 'third', 'First', '__proto__'])('"%s" is no policy', (name) => {
    const router = routerOver(podState('a:1'))
    expect(router.route(turn, name)).toEqual({ kind: 'unknown-policy', known: ['first', 'second'] })
  })

  test('an unknown policy is reported even when no pod is ready', () => {
    expect(routerOver().route(turn, 'third')).toMatchObject({ kind: 'unknown-policy' })
  })

  test.each([
    { name: 'there is none', pods: [] },
    { name: 'none is ready', pods: [podState('a:1', { ready: false }), podState('b:1', { ready: false })] },
  ])('no pod when $name', ({ pods }) => {
    expect(routerOver(...pods).route(turn, undefined)).toEqual({ kind: 'no-ready-pod' })
  })

  test('leaves pods out that are not ready, as choice and as fallback', () => {
    const router = routerOver(
      podState('a:1', { ready: false }),
      podState('b:1'),
      podState('c:1', { ready: false }),
      podState('d:1'),
    )
    expect(router.route(turn, undefined)).toEqual({ kind: 'routed', policy: 'first', pod: 'b:1', fallbacks: ['d:1'] })
  })

  test('fallbacks are the three least loaded pods, by load', () => {
    const router = routerOver(
      podState('a:1', { inFlight: 9 }),
      podState('e:1', { inFlight: 4 }),
      podState('b:1', { inFlight: 2 }),
      podState('c:1', { running: 1 }),
      podState('d:1', { waiting: 3 }),
    )
    expect(router.route(turn, undefined)).toEqual({
      kind: 'routed',
      policy: 'first',
      pod: 'a:1',
      fallbacks: ['c:1', 'b:1', 'd:1'],
    })
  })

  test('equal fallbacks follow the chosen pod in a circle', () => {
    const router = routerOver(podState('a:1'), podState('b:1'), podState('c:1'))
    expect(router.route(turn, 'second')).toEqual({
      kind: 'routed',
      policy: 'second',
      pod: 'b:1',
      fallbacks: ['c:1', 'a:1'],
    })
  })
})
