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

const ticket: TurnTicket = { turnId: 'turn', pod: '127.0.0.1:19101', session }

const changed = (change: object): string => JSON.stringify({ ...JSON.parse(encodeTicket(ticket)), ...change })

describe('turn ticket', () => {
  test.each([
    { name: 'with everything', ticket },
    { name: 'without a session', ticket: { ...ticket, session: undefined } },
    { name: 'without a claim', ticket: { ...ticket, session: { ...session, claim: undefined } } },
    { name: 'that keeps the deadline', ticket: { ...ticket, session: { ...session, expiry: { kind: 'keep' } } } },
    { name: 'that slides the deadline', ticket: { ...ticket, session: { ...session, expiry: { kind: 'slide' } } } },
  ] satisfies { name: string; ticket: TurnTicket }[])('comes back as it went: $name', ({ ticket: given }) => {
    expect(decodeTicket(encodeTicket(given))).toEqual(given)
  })

  test.each([
    { name: 'nothing', text: '' },
    { name: 'no JSON', text: 'turn' },
    { name: 'half a ticket', text: encodeTicket(ticket).slice(0, -10) },
    { name: 'null', text: 'null' },
    { name: 'a list', text: '[]' },
    { name: 'an empty object', text: '{}' },
    { name: 'another version', text: changed({ v: 2 }) },
    { name: 'no version', text: changed({ v: undefined }) },
    { name: 'no turn', text: changed({ turnId: undefined }) },
    { name: 'a pod that is no text', text: changed({ pod: 1 }) },
    { name: 'a session that is no object', text: changed({ session: 'k' }) },
    { name: 'a session without tenant', text: changed({ session: { ...session, tenant: undefined } }) },
    { name: 'an unknown expiry', text: changed({ session: { ...session, expiry: { kind: 'never' } } }) },
    { name: 'a deadline without a time', text: changed({ session: { ...session, expiry: { kind: 'set' } } }) },
    {
      name: 'a TTL of nothing',
      text: changed({ session: { ...session, expiry: { kind: 'set', ttlSeconds: 0, expiresAtMs: 1 } } }),
    },
    { name: 'a claim that is no text', text: changed({ session: { ...session, claim: 3 } }) },
  ])('is undefined for $name', ({ text }) => {
    expect(decodeTicket(text)).toBeUndefined()
  })

  test('drops members that it does not know', () => {
    expect(decodeTicket(changed({ extra: 1, __proto__: { polluted: true } }))).toEqual(ticket)
  })
})
