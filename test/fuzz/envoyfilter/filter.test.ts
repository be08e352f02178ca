import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { encodeTurnReply, retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { compileFilter } from '../../support/compiled-filter.ts'
import { SimulatedEnvoy } from '../../support/simulated-envoy.ts'

let module: WebAssembly.Module
beforeAll(async () => {
  module = await compileFilter()
}, 60_000)

const patienceTicks = 20
const mostPatienceTicks = 300

type Step =
  | { readonly kind: 'request' }
  /** A verdict on one of those that wait, or bytes that say they are one. */
  | { readonly kind: 'verdict'; readonly pick: number; readonly says: 'go-on' | 'answer' | 'later' | 'nonsense' }
  | { readonly kind: 'nonsense'; readonly pick: number; readonly bytes: Uint8Array }
  | { readonly kind: 'leave' | 'retire' | 'break'; readonly pick: number }
  | { readonly kind: 'tick'; readonly times: number }
  | { readonly kind: 'reach'; readonly canOpen: boolean }
  | { readonly kind: 'replace' }

const pick = fc.nat(1000)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ kind: 'request' }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('verdict' as const),
      pick,
      says: fc.constantFrom('go-on', 'answer', 'later', 'nonsense'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('nonsense' as const), pick, bytes: fc.uint8Array() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('leave', 'retire', 'break'), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('tick' as const), times: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reach' as const), canOpen: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'replace' }) },
)

const chosen = <T>(items: readonly T[], index: number): T | undefined => items[index % items.length]

/** The stream on which a request was asked for last. */
const streamOf = (envoy: SimulatedEnvoy, id: number): number | undefined =>
  [...envoy.streams.values()]
    .filter(({ sent }) => sent.some((bytes) => decodeTurnMessage(bytes).id === id))
    .map(({ token }) => token)
    .at(-1)

const verdictBytes = (id: number, says: Extract<Step, { kind: 'verdict' }>['says']): Buffer => {
  switch (says) {
    case 'go-on':
      return encodeTurnReply(id, { kind: 'continue', phase: 'request-headers' })
    case 'answer':
      return encodeTurnReply(id, {
        kind: 'immediate',
        answer: { status: 404, headers: {}, body: Buffer.alloc(0), details: 'ctx' },
      })
    case 'later':
      return encodeTurnReply(id, { kind: 'extend', milliseconds: 5000 })
    case 'nonsense':
      return encodeTurnReply(id, { kind: 'extend', milliseconds: 0 }).fill(7, 0, 1)
  }
}

const perform = (envoy: SimulatedEnvoy, at: Step): void => {
  switch (at.kind) {
    case 'request':
      envoy.request({ ':path': '/v1/completions' })
      return
    case 'verdict': {
      const id = chosen(envoy.waiting(), at.pick)
      const token = id === undefined ? undefined : streamOf(envoy, id)
      if (id === undefined || token === undefined) return
      envoy.receive(token, verdictBytes(id, at.says))
      expect(envoy.fate(id)?.kind).toBe(
        { 'go-on': 'went-on', answer: 'answered', later: 'waits', nonsense: 'went-on' }[at.says],
      )
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
      if (token !== undefined) envoy.receive(token, retireReply)
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
      envoy.replaceRoot()
      return
  }
}

test('whatever gateways, clients and streams do, every request goes on or is answered once, in bounded time', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const envoy = new SimulatedEnvoy(module)
      for (const at of steps) perform(envoy, at)
      envoy.tick(mostPatienceTicks + patienceTicks)
      expect(envoy.waiting()).toEqual([])
      // Nothing of the past is in the way of a turn.
      envoy.canOpen = true
      const id = envoy.request({})
      const token = streamOf(envoy, id)
      expect(envoy.fate(id)).toEqual({ kind: 'waits' })
      envoy.receive(token ?? 0, encodeTurnReply(id, { kind: 'continue', phase: 'request-headers' }))
      expect(envoy.fate(id)?.kind).toBe('went-on')
      expect([...envoy.streams.values()].filter(({ isClosed }) => !isClosed).length).toBeLessThanOrEqual(4)
    }),
    { numRuns: 500 },
  )
})
