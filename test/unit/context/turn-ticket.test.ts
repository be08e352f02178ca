import { describe, expect, test } from '@jest/globals'
import { decodeTicket, encodeTicket, type TurnTicket } from '../../../src/context/turn-ticket.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

const session = {
  key: 'k'.repeat(43) as SessionKey,
  tenant: 't'.repeat(43) as TenantKey,
  model: 'm',
  expiry: { kind: 'set', ttlSeconds: 60, expiresAtMs: 1_754_000_000_000 },
  claim: '3',
} as const satisfies TurnTicket['session']

const ticket: TurnTicket = { turnId: 'turn', pool: 'chat', pod: '127.0.0.1:19101', session }

const written = (change: object, version = 3): string => JSON.stringify({ version, ticket: { ...ticket, ...change } })
const withSession = (change: object): string => written({ session: { ...session, ...change } })

describe('decodeTicket', () => {
  test.each([
    { name: 'no text', text: '' },
    { name: 'text that is not JSON', text: encodeTicket(ticket).slice(0, -1) },
    { name: 'other JSON', text: '[]' },
    { name: 'another version', text: written({}, 2) },
    { name: 'an empty turn id', text: written({ turnId: '' }) },
    { name: 'no pod', text: written({ pod: undefined }) },
    { name: 'a session without tenant', text: withSession({ tenant: undefined }) },
    { name: 'a session without expiry', text: withSession({ expiry: undefined }) },
    { name: 'an unknown expiry', text: withSession({ expiry: { kind: 'never' } }) },
    { name: 'a deadline without a time', text: withSession({ expiry: { kind: 'set', ttlSeconds: 60 } }) },
    { name: 'a TTL of 0', text: withSession({ expiry: { kind: 'set', ttlSeconds: 0, expiresAtMs: 1 } }) },
    { name: 'a claim that is not a string', text: withSession({ claim: 3 }) },
  ])('is undefined for $name', ({ text }) => {
    expect(decodeTicket(text)).toBeUndefined()
  })

  test('a ticket without a pool is one of the default pool', () => {
    expect(decodeTicket(written({ pool: undefined }))).toEqual({ ...ticket, pool: 'default' })
  })
})
