import { expect, test } from '@jest/globals'
import type { PodState } from '../../../src/routing/pod.ts'
import { createRouter, type RouteOutcome, type RoutingInput, type RoutingPolicy } from '../../../src/routing/router.ts'
import { podState } from './pod-state.ts'

/** Picks the pod at an index of those it receives. */
const picking = (name: string, index: number): RoutingPolicy => ({
  name,
  pick: (_turn, pods) => pods[index] ?? pods[0],
})

const route = (pods: readonly PodState[], policyName?: string, turn: Partial<RoutingInput> = {}): RouteOutcome =>
  createRouter({
    source: { pods: () => pods },
    stickiness: { factor: 2, margin: 1 },
    policies: [picking('first', 0), picking('second', 1)],
  }).route({ affinityKey: 'key', lastPod: undefined, ...turn }, policyName)

const podsAt = (...addresses: readonly string[]): readonly PodState[] => addresses.map((address) => podState(address))
const unready = (address: string): PodState => podState(address, { ready: false })
const [b, d] = podsAt('b:1', 'd:1') as [PodState, PodState]

test.each<[string, readonly PodState[], string | undefined, string, readonly string[]]>([
  ['asks the first policy by default', podsAt('a:1', 'b:1'), undefined, 'a:1', ['b:1']],
  ['asks the policy that the request names', podsAt('a:1', 'b:1'), 'second', 'b:1', ['a:1']],
  ['ignores pods that are not ready', [unready('a:1'), b, unready('c:1'), d], undefined, 'b:1', ['d:1']],
  ['leaves out new pods while another is ready', [unready('a:1'), { ...d, isNew: true }, b], undefined, 'b:1', []],
  ['takes new pods where there is no other', [unready('a:1'), { ...d, isNew: true }], undefined, 'd:1', []],
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

const podA = (sketch: Partial<PodState>) => podState('a:1', sketch)
const podB = (sketch: Partial<PodState>) => podState('b:1', sketch)
const serving = (...names: readonly string[]) => ({ models: { names: new Set(names), answersAnyName: false } })
const anyName = { models: { names: new Set(['own']), answersAnyName: true } }
const running = { activeAdapters: new Set(['m']) }

test.each<[string, readonly PodState[], Partial<RoutingInput>, readonly string[]]>([
  ['to pods that list the model', [podA(serving('x')), podB(serving('x', 'm'))], {}, ['b:1']],
  ['to a pod that lists it before one of any name', [podA(anyName), podB(serving('m'))], {}, ['b:1']],
  ['to pods of any name, and of unknown models', [podA(anyName), b, podState('c:1', serving('x'))], {}, ['a:1', 'b:1']],
  [
    'to a pod that runs the adapter, and to others only again',
    [podA(serving('m')), podB({ ...serving('m'), ...running, inFlight: 1 })],
    {},
    ['b:1', 'a:1'],
  ],
  [
    'past a pod that runs the adapter and is overloaded',
    [podA(serving('m')), podB({ ...serving('m'), ...running, inFlight: 2 })],
    {},
    ['a:1', 'b:1'],
  ],
  [
    'by its policy when the session has a pod',
    [podA(serving('m')), podB({ ...serving('m'), ...running })],
    { lastPod: 'a:1' },
    ['a:1', 'b:1'],
  ],
])('routes a turn of a model %s', (_title, pods, turn, addresses) => {
  const [pod, ...fallbacks] = addresses
  expect(route(pods, undefined, { model: 'm', ...turn })).toEqual({ kind: 'routed', policy: 'first', pod, fallbacks })
})

test.each<[string, readonly PodState[], RouteOutcome['kind']]>([
  ['that no pod serves', [podA(serving('x')), podB({ ...serving('y'), ready: false })], 'unknown-model'],
  ['whose pods are not ready', [podA(anyName), b, podState('c:1', { ...serving('m'), ready: false })], 'no-ready-pod'],
  ['that no pod serves, without any pod', [], 'no-ready-pod'],
])('routes to no pod for a model %s', (_title, pods, kind) => {
  expect(route(pods, undefined, { model: 'm' })).toEqual({ kind })
})
