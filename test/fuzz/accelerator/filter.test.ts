import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { compileFilter } from '../../support/compiled-filter.ts'
import { type Fate, SimulatedEnvoy } from '../../support/simulated-envoy.ts'
import { encodeReply } from '../../unit/accelerator/filter-bench.ts'

let module: WebAssembly.Module
beforeAll(async () => {
  module = await compileFilter()
}, 60_000)

const patienceTicks = 20
const mostPatienceTicks = 300

type Step =
  | { readonly kind: 'request' }
  /** A verdict on one of those that wait, or bytes that say they are one. */
  | {
      readonly kind: 'verdict'
      readonly pick: number
      readonly says: 'go-on' | 'splice' | 'answer' | 'later' | 'nonsense'
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
      kind: fc.constant('verdict' as const),
      pick,
      says: fc.constantFrom('go-on', 'splice', 'answer', 'later', 'nonsense'),
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

/** The stream on which a request was asked for last. */
const streamOf = (envoy: SimulatedEnvoy, id: number): number | undefined =>
  [...envoy.streams.values()]
    .filter(({ sent }) => sent.some((bytes) => decodeTurnMessage(bytes).id === id))
    .map(({ token }) => token)
    .at(-1)

const verdictBytes = (id: number, says: Extract<Step, { kind: 'verdict' }>['says']): Buffer => {
  switch (says) {
    case 'go-on':
      return encodeReply(id, { kind: 'continue', phase: 'request-headers' })
    case 'splice':
      return encodeReply(id, {
        kind: 'proceed',
        phase: 'request-headers',
        changes: { setHeaders: {}, metadata: { ctx: { splice: '"a":1', model: 'm' } } },
      })
    case 'answer':
      return encodeReply(id, {
        kind: 'immediate',
        answer: { status: 404, headers: {}, body: Buffer.alloc(0), details: 'ctx' },
      })
    case 'later':
      return encodeReply(id, { kind: 'extend', milliseconds: 5000 })
    case 'nonsense':
      return encodeReply(id, { kind: 'extend', milliseconds: 0 }).fill(7, 0, 1)
  }
}

/** What is known of the requests that the filter holds. */
interface Held {
  isDecided: boolean
  isWhole: boolean
}
type Bench = { readonly envoy: SimulatedEnvoy; readonly held: Map<number, Held> }

/** What a verdict makes of a request. */
const outcomeOf = ({ isDecided, isWhole }: Held, says: Extract<Step, { kind: 'verdict' }>['says']): Fate['kind'] => {
  if (isDecided || says === 'later') return 'waits'
  if (says === 'answer') return 'answered'
  return says === 'splice' && !isWhole ? 'waits' : 'went-on'
}

const giveBody = ({ envoy, held }: Bench, id: number, isLast: boolean): void => {
  const request = held.get(id)
  if (request === undefined || request.isWhole) return
  request.isWhole = isLast
  envoy.body(id, isLast ? '}' : ' ', isLast ? 'last' : 'more')
  expect(envoy.fate(id)?.kind).toBe(request.isDecided && isLast ? 'went-on' : 'waits')
}

const takeRequest = ({ envoy, held }: Bench): void => {
  const id = envoy.request({ ':path': '/v1/completions' })
  if (envoy.fate(id)?.kind !== 'waits') return
  held.set(id, { isDecided: false, isWhole: false })
  envoy.body(id, '{"model":"m"', 'more')
}

const giveVerdict = ({ envoy, held }: Bench, at: Extract<Step, { kind: 'verdict' }>): void => {
  const id = chosen(envoy.waiting(), at.pick)
  const token = id === undefined ? undefined : streamOf(envoy, id)
  const request = id === undefined ? undefined : held.get(id)
  if (id === undefined || token === undefined || request === undefined) return
  const outcome = outcomeOf(request, at.says)
  envoy.receive(token, verdictBytes(id, at.says))
  expect(envoy.fate(id)?.kind).toBe(outcome)
  if (at.says === 'splice') request.isDecided = true
}

const perform = (bench: Bench, at: Step): void => {
  const { envoy } = bench
  switch (at.kind) {
    case 'request':
      takeRequest(bench)
      return
    case 'verdict':
      giveVerdict(bench, at)
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
      envoy.addRoot()
      envoy.removeRoot()
      return
  }
}

test('whatever gateways, clients and streams do, every request goes on or is answered once, in bounded time', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const envoy = new SimulatedEnvoy(module)
      const bench: Bench = { envoy, held: new Map() }
      for (const at of steps) perform(bench, at)
      envoy.tick(mostPatienceTicks + patienceTicks)
      // What waits now waits for its body alone.
      for (const id of envoy.waiting()) giveBody(bench, id, true)
      expect(envoy.waiting()).toEqual([])
      for (const [id, { isDecided }] of bench.held) {
        const fate = envoy.fate(id)
        if (fate?.kind === 'went-on') expect(fate.body.includes('"a":1')).toBe(isDecided)
      }
      // Nothing of the past is in the way of a turn.
      envoy.canOpen = true
      const id = envoy.request({})
      const token = streamOf(envoy, id)
      expect(envoy.fate(id)).toEqual({ kind: 'waits' })
      envoy.receive(token ?? 0, encodeReply(id, { kind: 'continue', phase: 'request-headers' }))
      expect(envoy.fate(id)?.kind).toBe('went-on')
      expect([...envoy.streams.values()].filter(({ isClosed }) => !isClosed).length).toBeLessThanOrEqual(4)
    }),
    { numRuns: 500 },
  )
})
