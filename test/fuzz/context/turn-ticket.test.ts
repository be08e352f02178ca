import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createTickets, type TurnTicket } from '../../../src/context/turn-ticket.ts'
import { sign } from '../../../src/crypto/mac.ts'
import { deriveKey } from '../../../src/crypto/seal.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

const secret = 'a secret that is long enough for a gateway'
const tickets = createTickets(secret)

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
  traceId: fc.option(text, { nil: undefined }),
  requestId: fc.option(text, { nil: undefined }),
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
        expect(tickets.decode(tickets.encode(given))).toEqual(given)
      }),
      { numRuns: 1000 },
    )
  })

  test('is refused when any of its characters is changed', () => {
    fc.assert(
      fc.property(ticket, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (given, place, other) => {
        const encoded = tickets.encode(given)
        const at = place % encoded.length
        fc.pre(encoded[at] !== other)
        expect(tickets.decode(encoded.slice(0, at) + other + encoded.slice(at + 1))).toBeUndefined()
      }),
    )
  })

  const session = { key: 'k', tenant: 't', model: 'm', expiry: { kind: 'keep' } }
  const whole = { turnId: 'turn', pool: 'chat', pod: '127.0.0.1:19101', session }
  const signed = (text: string): string => sign(deriveKey(secret, 'context-cache turn ticket'), text)
  const json = (change: object, version = 4): string => JSON.stringify({ version, ticket: { ...whole, ...change } })

  test.each([
    { name: 'no text', text: '' },
    { name: 'text that is not JSON', text: signed('{') },
    { name: 'other JSON', text: signed('[]') },
    { name: 'a ticket without a MAC', text: json({}) },
    { name: 'a MAC alone', text: signed(json({})).slice(0, 22) },
    { name: 'another version', text: signed(json({}, 3)) },
    { name: 'another tenant secret', text: sign(deriveKey('another', 'context-cache turn ticket'), json({})) },
    { name: 'no pod', text: signed(json({ pod: undefined })) },
    { name: 'a session without tenant', text: signed(json({ session: { ...session, tenant: undefined } })) },
  ])('is none: $name', ({ text }) => {
    expect(tickets.decode(text)).toBeUndefined()
  })

  test('is known to every gateway with the same secret', () => {
    expect(createTickets(secret).decode(signed(json({})))).toEqual(whole)
  })
})
