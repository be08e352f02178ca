import { describe, expect, test } from '@jest/globals'
import { createTickets, type TurnTicket } from '../../../src/context/turn-ticket.ts'
import { sign } from '../../../src/crypto/mac.ts'
import { deriveKey } from '../../../src/crypto/seal.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

const session = {
  key: 'k'.repeat(43) as SessionKey,
  tenant: 't'.repeat(43) as TenantKey,
  model: 'm',
  expiry: { kind: 'set', ttlSeconds: 60, expiresAtMs: 1_754_000_000_000 },
  claim: '3',
} as const satisfies TurnTicket['session']

const ticket: TurnTicket = { turnId: 'turn', pool: 'chat', pod: '127.0.0.1:19101', session }

const secret = 'a secret that is long enough for a gateway'
const tickets = createTickets(secret)

const json = (change: object, version = 4): string => JSON.stringify({ version, ticket: { ...ticket, ...change } })
const signed = (text: string): string => sign(deriveKey(secret, 'context-cache turn ticket'), text)
const written = (change: object, version?: number): string => signed(json(change, version))
const withSession = (change: object): string => written({ session: { ...session, ...change } })

describe('a ticket', () => {
  test.each([
    { name: 'no text', text: '' },
    { name: 'text that is not JSON', text: signed('{') },
    { name: 'other JSON', text: signed('[]') },
    { name: 'a ticket without a MAC', text: json({}) },
    { name: 'an earlier version', text: JSON.stringify({ version: 3, ticket }) },
    { name: 'another version', text: written({}, 3) },
    { name: 'another tenant secret', text: createTickets('another secret of some other deployment').encode(ticket) },
    { name: 'a ticket with another pod', text: tickets.encode(ticket).replace('19101', '19102') },
    { name: 'a ticket that is cut off', text: tickets.encode(ticket).slice(0, -1) },
    { name: 'a MAC alone', text: tickets.encode(ticket).slice(0, 22) },
    { name: 'an empty turn id', text: written({ turnId: '' }) },
    { name: 'no pod', text: written({ pod: undefined }) },
    { name: 'a session without tenant', text: withSession({ tenant: undefined }) },
    { name: 'a session without expiry', text: withSession({ expiry: undefined }) },
    { name: 'an unknown expiry', text: withSession({ expiry: { kind: 'never' } }) },
    { name: 'a deadline without a time', text: withSession({ expiry: { kind: 'set', ttlSeconds: 60 } }) },
    { name: 'a TTL of 0', text: withSession({ expiry: { kind: 'set', ttlSeconds: 0, expiresAtMs: 1 } }) },
    { name: 'a claim that is not a string', text: withSession({ claim: 3 }) },
  ])('is undefined for $name', ({ text }) => {
    expect(tickets.decode(text)).toBeUndefined()
  })

  test('is known to every gateway with the same secret', () => {
    expect(createTickets(secret).decode(tickets.encode(ticket))).toEqual(ticket)
    expect(tickets.decode(written({}))).toEqual(ticket)
  })
})
