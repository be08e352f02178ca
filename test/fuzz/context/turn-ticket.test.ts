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

  test('is undefined for other text', () => {
    const garbage = fc.oneof(
      text,
      fc.json(),
      fc.jsonValue().map((session) => JSON.stringify({ version: 3, ticket: { turnId: 't', pod: 'p', session } })),
    )
    fc.assert(
      fc.property(garbage, (given) => {
        expect(decodeTicket(given)).toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })

  test('is undefined for a truncated ticket', () => {
    fc.assert(
      fc.property(ticket, fc.nat(), (given, cut) => {
        const whole = encodeTicket(given)
        expect(decodeTicket(whole.slice(0, cut % whole.length))).toBeUndefined()
      }),
    )
  })
})
