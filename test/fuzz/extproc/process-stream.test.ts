import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { HeadersDecision, RequestScope } from '../../../src/context/context-cache-manager.ts'
import type { ExtProcEvent } from '../../../src/extproc/codec.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { openStream } from '../../unit/extproc/stream-harness.ts'
import { anyMessage } from './exchange-arbitraries.ts'

type Decide = (scope: RequestScope) => Promise<HeadersDecision>

const anyThrown = fc.oneof(
  fc.anything(),
  fc.constant(new Error('boom')),
  fc.constant(new GatewayError('no_ready_endpoints')),
)

/** Decisions good and bad, at once or later, with or without a wish for more time. */
const anyDecide: fc.Arbitrary<Decide> = fc.oneof(
  fc.constant<Decide>(async () => ({ kind: 'passthrough', destinations: [] })),
  fc.constant<Decide>(async (scope) => {
    scope.extendDeadline(1000)
    await new Promise(setImmediate)
    return { kind: 'reject', error: new GatewayError('session_not_found') }
  }),
  fc.anything().map<Decide>((body) => async () => ({ kind: 'response', status: 200, body, headers: {} })),
  anyThrown.map<Decide>((thrown) => () => Promise.reject(thrown)),
  anyThrown.map<Decide>((thrown) => () => {
    throw thrown
  }),
  fc.constant<Decide>(() => new Promise(() => {})),
)

const anyService: fc.Arbitrary<Decide> = fc.oneof(
  anyDecide,
  anyDecide.map<Decide>((decide) => async () => ({
    kind: 'need-body',
    decide: (_body, scope) => decide(scope) as never,
  })),
)

type Act = { readonly message: ExtProcEvent } | { readonly act: 'pause' | 'half_close' }

const anyAct: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: anyMessage.map((message) => ({ message: message as ExtProcEvent })) },
  { weight: 3, arbitrary: fc.constant<Act>({ act: 'pause' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ act: 'half_close' }) },
)

test('any messages and decisions get at most one reply each and one end', async () => {
  await fc.assert(
    fc.asyncProperty(anyService, fc.array(anyAct, { maxLength: 20 }), async (decide, acts) => {
      const stream = openStream((_request, scope) => decide(scope), { maxBodyBytes: 10 })
      let messages = 0
      let halfClosed = false
      for (const act of acts) {
        if ('message' in act && !halfClosed) {
          messages++
          stream.receiver.message(act.message)
        } else if ('act' in act && act.act === 'half_close') {
          halfClosed = true
          stream.receiver.halfClosed()
        } else {
          await new Promise(setImmediate)
        }
      }
      await new Promise(setImmediate)
      await new Promise(setImmediate)
      stream.receiver.closed()
      const sentBefore = stream.sent.length
      await new Promise(setImmediate)
      const replies = stream.sent.filter(({ kind }) => kind !== 'extend')
      expect(replies.length).toBeLessThanOrEqual(messages)
      expect(stream.messages.length).toBe(replies.length)
      expect(stream.ends.length).toBeLessThanOrEqual(1)
      expect(stream.sent).toHaveLength(sentBefore)
      expect(stream.streams).toEqual({ opened: 1, closed: 1 })
    }),
    { numRuns: 1000 },
  )
})
