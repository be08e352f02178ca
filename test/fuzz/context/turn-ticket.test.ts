import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeTicket, encodeTicket, type TurnTicket } from '../../../src/context/turn-ticket.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

const text = fc.string({ unit: 'binary', minLength: 1 })

const expiry = fc.oneof(
  fc.record({ kind: fc.constant('keep' as const) }),
  fc.record({ kind: fc.constant('slide' as const) }),
  fc.record({
    kind: fc.constant('set' as const),
    ttlSeconds: fc.integer({ min: 1, max: 999_999_999 }),
    expiresAtMs: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value)),
  }),
)

const ticket: fc.Arbitrary<TurnTicket> = fc.record({
  turnId: text,
  pool: text,
  pod: text,
  session: fc.option(
    fc.record({
      key: text.map((key) => key as SessionKey),
      tenant: text.map((key) => key as TenantKey),
      model: text,
      expiry,
      claim: fc.option(text, { nil: undefined }),
      promised: fc.option(
        fc.record({ tokens: fc.nat(), source: fc.constantFrom('kept' as const, 'loaded' as const) }),
        { nil: undefined },
      ),
    }),
    { nil: undefined },
  ),
})

describe('turn ticket', () => {
  test('decodes to what was encoded', () => {
    fc.assert(
      fc.property(ticket, (given) => {
        expect(decodeTicket(encodeTicket(given))).toEqual(given)
      }),
      { numRuns: 1000 },
    )
  })
})
