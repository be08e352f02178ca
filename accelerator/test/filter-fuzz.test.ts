import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { extend, forward, reply, retire, sentBy, ticksToWait, useFilter } from './filter-fixture.ts'
import type { Fate, SimulatedEnvoy } from './simulated-envoy.ts'

const { start } = useFilter()

const maxTicksToWait = 300

type Step =
  | { readonly kind: 'request' }
  /** A decision on a request that waits, perhaps one that cannot be read; `none`: a reply without a decision. */
  | {
      readonly kind: 'decision'
      readonly pick: number
      readonly says: 'forward' | 'splice' | 'answer' | 'extend' | 'nonsense' | 'none'
    }
  | { readonly kind: 'nonsense'; readonly pick: number; readonly bytes: Uint8Array }
  | { readonly kind: 'leave' | 'retire' | 'break'; readonly pick: number }
  | { readonly kind: 'tick'; readonly times: number }
  | { readonly kind: 'body'; readonly pick: number; readonly isLast: boolean }
  | { readonly kind: 'reach'; readonly canOpen: boolean }
  | { readonly kind: 'replace' }

const pick = fc.nat(1000)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ kind: 'request' }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('decision' as const),
      pick,
      says: fc.constantFrom('forward', 'splice', 'answer', 'extend', 'nonsense', 'none'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('nonsense' as const), pick, bytes: fc.uint8Array() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('leave', 'retire', 'break'), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('tick' as const), times: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('body' as const), pick, isLast: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reach' as const), canOpen: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'replace' }) },
)

const chosen = <T>(items: readonly T[], index: number): T | undefined => items[index % items.length]

type Says = Extract<Step, { kind: 'decision' }>['says']

/** The stream that a request was asked on last; none while its ask is collected. */
const streamOf = (envoy: SimulatedEnvoy, id: number): number | undefined =>
  sentBy(envoy).findLast((sent) => sent.id === id)?.token

const decisionBytes = (id: number, says: Says): Buffer => {
  switch (says) {
    case 'forward':
      return reply(forward(id))
    case 'splice':
      return reply(forward(id, { splice: '"a":1', model: 'm' }))
    case 'answer':
      return reply({ id, answer: { status: 404, headers: Buffer.alloc(4), body: Buffer.alloc(0), details: 'ctx' } })
    case 'extend':
      return reply(extend(id, 5000))
    case 'nonsense':
      return reply({ id, answer: { status: 404, headers: Buffer.alloc(3), body: Buffer.alloc(0), details: 'ctx' } })
    case 'none':
      return reply()
  }
}

/** What is known of the requests that the filter holds. */
interface Held {
  isDecided: boolean
  isWhole: boolean
}
type Bench = { readonly envoy: SimulatedEnvoy; readonly held: Map<number, Held> }

/** What a decision does with a request. */
const outcomeOf = ({ isDecided, isWhole }: Held, says: Says): Fate['kind'] => {
  if (isDecided || says === 'extend' || says === 'none') return 'waits'
  if (says === 'answer') return 'answered'
  return says === 'splice' && !isWhole ? 'waits' : 'forwarded'
}

const giveBody = ({ envoy, held }: Bench, id: number, isLast: boolean): void => {
  const request = held.get(id)
  if (request === undefined || request.isWhole) return
  request.isWhole = isLast
  envoy.body(id, isLast ? '}' : ' ', isLast ? 'last' : 'more')
  expect(envoy.fate(id)?.kind).toBe(request.isDecided && isLast ? 'forwarded' : 'waits')
}

const takeRequest = ({ envoy, held }: Bench): void => {
  const id = envoy.request({ ':path': '/v1/completions' })
  if (envoy.fate(id)?.kind !== 'waits') return
  held.set(id, { isDecided: false, isWhole: false })
  envoy.body(id, '{"model":"m"', 'more')
}

const giveDecision = ({ envoy, held }: Bench, at: Extract<Step, { kind: 'decision' }>): void => {
  const id = chosen(envoy.waiting(), at.pick)
  const token = id === undefined ? undefined : streamOf(envoy, id)
  const request = id === undefined ? undefined : held.get(id)
  if (id === undefined || token === undefined || request === undefined) return
  const outcome = outcomeOf(request, at.says)
  envoy.receive(token, decisionBytes(id, at.says))
  expect(envoy.fate(id)?.kind).toBe(outcome)
  if (at.says === 'splice') request.isDecided = true
}

const perform = (bench: Bench, at: Step): void => {
  const { envoy } = bench
  switch (at.kind) {
    case 'request':
      takeRequest(bench)
      return
    case 'decision':
      giveDecision(bench, at)
      return
    case 'body': {
      const id = chosen(envoy.waiting(), at.pick)
      if (id !== undefined) giveBody(bench, id, at.isLast)
      return
    }
    case 'nonsense': {
      const token = chosen([...envoy.streams.keys()], at.pick)
      if (token !== undefined) envoy.receive(token, Buffer.from(at.bytes))
      return
    }
    case 'leave': {
      const id = chosen(envoy.waiting(), at.pick)
      if (id !== undefined) envoy.delete(id)
      return
    }
    case 'retire': {
      const token = chosen([...envoy.streams.keys()], at.pick)
      if (token !== undefined) envoy.receive(token, retire)
      return
    }
    case 'break': {
      const token = chosen([...envoy.streams.keys()], at.pick)
      if (token !== undefined) envoy.end(token)
      return
    }
    case 'tick':
      envoy.tick(at.times)
      return
    case 'reach':
      envoy.canOpen = at.canOpen
      return
    case 'replace':
      envoy.addRoot()
      envoy.removeRoot()
      return
  }
}

test('every request is forwarded or answered once, in bounded time, whatever gateways, clients and streams do', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const envoy = start()
      const bench: Bench = { envoy, held: new Map() }
      for (const at of steps) perform(bench, at)
      envoy.tick(maxTicksToWait + ticksToWait)
      // A request that still waits has a decision, and waits for its body.
      for (const id of envoy.waiting()) giveBody(bench, id, true)
      expect(envoy.waiting()).toEqual([])
      for (const [id, { isDecided }] of bench.held) {
        const fate = envoy.fate(id)
        if (fate?.kind === 'forwarded') expect(fate.body.includes('"a":1')).toBe(isDecided)
      }
      // The filter still serves.
      envoy.canOpen = true
      const id = envoy.request({})
      expect(envoy.fate(id)).toEqual({ kind: 'waits' })
      for (const token of envoy.streams.keys()) envoy.receive(token, reply())
      envoy.receive(streamOf(envoy, id) ?? 0, reply(forward(id)))
      expect(envoy.fate(id)?.kind).toBe('forwarded')
      expect([...envoy.streams.values()].filter(({ isClosed }) => !isClosed).length).toBeLessThanOrEqual(4)
    }),
    { numRuns: 500 },
  )
})
