import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createCostModel } from '../../../src/routing/cost-model.ts'
import type { PodState } from '../../../src/routing/pod.ts'
import { createPolicies } from '../../../src/routing/policies.ts'

const addresses = fc.nat({ max: 8 }).map((host) => `10.0.0.${host}:8000`)
const requests = fc.nat({ max: 50 })
const milliseconds = fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined })
const tokens = fc.nat({ max: 200_000 })

const pod = fc
  .record({
    address: addresses,
    inFlight: requests,
    running: requests,
    waiting: requests,
    backlog: milliseconds,
  })
  .map(
    ({ backlog, ...state }): PodState => ({
      ...state,
      ready: true,
      kvUsage: state.running / 50,
      ...(backlog === undefined ? {} : { prefillBacklogMs: backlog }),
    }),
  )

const pods = fc
  .uniqueArray(pod, { minLength: 1, maxLength: 8, selector: ({ address }) => address })
  .map(([first, ...others]): readonly [PodState, ...PodState[]] => [first as PodState, ...others])

const turn = fc.record({
  affinityKey: fc.option(fc.string(), { nil: undefined }),
  lastPod: fc.option(addresses, { nil: undefined }),
  model: fc.option(fc.string(), { nil: undefined }),
  promptTokens: fc.option(tokens, { nil: undefined }),
  stored: fc.option(fc.record({ tokens, bytes: fc.nat() }), { nil: undefined }),
  residentTokens: fc.option(
    fc.array(fc.tuple(addresses, tokens), { maxLength: 8 }).map((entries) => new Map(entries)),
    { nil: undefined },
  ),
})

const stickiness = fc.record({ factor: fc.double({ min: 1, max: 5, noNaN: true }), margin: fc.nat({ max: 10 }) })
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('all policies', () => {
  test('always pick one of the pods they are given', () => {
    fc.assert(
      fc.property(pods, turn, stickiness, random, (given, one, limits, number) => {
        const costs = createCostModel({ initialMsPerToken: 0.1 })
        const policies = createPolicies({
          defaultPolicy: 'predicted-ttft',
          stickiness: limits,
          random: () => number,
          costs,
        })
        expect(policies).toHaveLength(7)
        for (const policy of policies) expect(given).toContain(policy.pick(one, given))
      }),
    )
  })
})
