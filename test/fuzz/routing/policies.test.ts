import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import { type PodState, type Pods, podLoad } from '../../../src/routing/pod.ts'
import { createPolicies, type PolicyName } from '../../../src/routing/policies.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { rendezvousOrder } from '../../../src/routing/session-affinity.ts'

const requests = fc.nat({ max: 50 })

const podFields = {
  address: fc.nat({ max: 30 }).map((host) => `10.0.0.${host}:8000`),
  ready: fc.constant(true),
  inFlight: requests,
  running: requests,
  waiting: requests,
  kvUsage: fc.double({ min: 0, max: 1, noNaN: true }),
  inFlightAtRead: requests,
}

const podsOf = (pod: fc.Arbitrary<PodState>): fc.Arbitrary<Pods> =>
  fc
    .uniqueArray(pod, { minLength: 1, maxLength: 12, selector: ({ address }) => address })
    .map(([first, ...others]) => [first as PodState, ...others])

const pods = podsOf(
  fc.record(
    { ...podFields, prefillBacklogMs: fc.double({ min: 0, max: 1e6, noNaN: true }) },
    { requiredKeys: ['address', 'ready', 'inFlight', 'running', 'waiting', 'kvUsage'] },
  ),
)

const tokens = fc.nat({ max: 200_000 })
const turn = fc.record({
  affinityKey: fc.option(fc.string(), { nil: undefined }),
  lastPod: fc.option(podFields.address, { nil: undefined }),
  model: fc.option(fc.string(), { nil: undefined }),
  promptTokens: fc.option(tokens, { nil: undefined }),
  stored: fc.option(fc.record({ tokens, bytes: fc.nat() }), { nil: undefined }),
  residentTokens: fc.option(
    fc.array(fc.tuple(podFields.address, tokens), { maxLength: 8 }).map((entries) => new Map(entries)),
    { nil: undefined },
  ),
})

const stickiness = fc.record({ factor: fc.double({ min: 1, max: 5, noNaN: true }), margin: fc.nat({ max: 10 }) })

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

test('every policy picks one of the given pods, least-request and session-affinity none with too many requests', () => {
  fc.assert(
    fc.property(pods, turn, stickiness, random, (given, one, limits, number) => {
      const costs = createCostModel({ initialMsPerToken: 0.1 })
      const options = { defaultPolicy: 'predicted-ttft', stickiness: limits, random: () => number, costs } as const
      const picks = new Map(createPolicies(options).map((policy) => [policy.name, policy.pick(one, given)]))
      for (const picked of picks.values()) expect(given).toContain(picked)

      const least = Math.min(...given.map(podLoad))
      const loadOf = (name: PolicyName): number => podLoad(picks.get(name) ?? given[0])
      expect(loadOf('least-request')).toBe(least)
      const limit = limits.factor * least + limits.margin
      expect(loadOf('session-affinity')).toBeLessThanOrEqual(limit)
      // The pod of the last turn is left only above the limit.
      const staying = given.find((each) => each.address === one.lastPod && podLoad(each) <= limit)
      expect(picks.get('session-affinity')).toBe(staying ?? picks.get('session-affinity'))
    }),
    { numRuns: 200 },
  )
})

describe('rendezvousOrder', () => {
  const addressesOf = (ordered: readonly PodState[]): readonly string[] => ordered.map(({ address }) => address)

  test('contains every pod once, in an order that does not depend on the input order', () => {
    fc.assert(
      fc.property(fc.string(), pods, (key, given) => {
        const [last, ...rest] = [...given].reverse()
        const backwards: Pods = [last ?? given[0], ...rest]
        const order = addressesOf(rendezvousOrder(key, given))
        expect([...order].sort()).toEqual([...addressesOf(given)].sort())
        expect(addressesOf(rendezvousOrder(key, backwards))).toEqual(order)
      }),
    )
  })

  test('moves only keys of a pod that is removed', () => {
    fc.assert(
      fc.property(fc.string(), pods, fc.nat(), (key, given, index) => {
        const lost = given[index % given.length]
        const [first, ...others] = given.filter((each) => each !== lost)
        fc.pre(first !== undefined)
        const before = addressesOf(rendezvousOrder(key, given))
        const after = addressesOf(rendezvousOrder(key, [first as PodState, ...others]))
        expect(after).toEqual(before.filter((address) => address !== lost?.address))
      }),
    )
  })
})

describe('createRouter', () => {
  test('returns a ready pod and at most three other ready ones, each once', () => {
    const states = fc.uniqueArray(fc.record({ ...podFields, ready: fc.boolean() }), {
      maxLength: 8,
      selector: ({ address }) => address,
    })
    fc.assert(
      fc.property(states, turn, random, (given, one, number) => {
        const stickiness = { factor: 2, margin: 4 }
        const policies = createPolicies({
          defaultPolicy: 'session-affinity',
          stickiness,
          random: () => number,
        })
        const outcome = createRouter({ source: { pods: () => given }, policies, stickiness }).route(one, undefined)
        const named = outcome.kind === 'routed' ? [outcome.pod, ...outcome.fallbacks] : []
        const ready = given.filter((each) => each.ready).map(({ address }) => address)
        expect(named).toHaveLength(Math.min(4, ready.length))
        expect(new Set(named).size).toBe(named.length)
        for (const address of named) expect(ready).toContain(address)
      }),
    )
  })
})
