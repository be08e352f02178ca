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

/** A ticket of these texts, written by hand. */
const written = (version: string, ...texts: readonly string[]): string =>
  `${[version, ...texts.map((text) => text.length)].join(' ')}\n${texts.join('')}`

const known = ['turn', 'pod', 'key', 'tenant', 'm'] as const

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

  test('is not JSON, and as short as what it holds allows', () => {
    expect(encodeTicket({ ...ticket, session: { ...session, key: 'k' as SessionKey, tenant: 't' as TenantKey } })).toBe(
      '2 4 15 1 1 1 16 1\nturn127.0.0.1:19101ktm60 17540000000003',
    )
  })

  test.each([
    { name: 'nothing', text: '' },
    { name: 'a word', text: 'turn' },
    { name: 'half a ticket', text: encodeTicket(ticket).slice(0, -10) },
    { name: 'a ticket and more', text: `${encodeTicket(ticket)}x` },
    { name: 'JSON', text: '{"v":1,"turnId":"turn","pod":"pod"}' },
    { name: 'another version', text: written('1', 'turn', 'pod') },
    { name: 'no version', text: written('', 'turn', 'pod') },
    { name: 'no turn', text: '2\n' },
    { name: 'no pod', text: written('2', 'turn') },
    { name: 'a session without tenant', text: written('2', 'turn', 'pod', 'key') },
    { name: 'a session without expiry', text: written('2', ...known) },
    { name: 'nothing said of the claim', text: written('2', ...known, 'k') },
    { name: 'more than a ticket has', text: written('2', ...known, 'k', 'claim', 'more') },
    { name: 'an unknown expiry', text: written('2', ...known, 'x', 'claim') },
    { name: 'a deadline without a time', text: written('2', ...known, '60', 'claim') },
    { name: 'a deadline with an empty time', text: written('2', ...known, '60 ', 'claim') },
    { name: 'a deadline that is no number', text: written('2', ...known, '60 soon', 'claim') },
    { name: 'a deadline with more than a time', text: written('2', ...known, '60 1 1', 'claim') },
    { name: 'a TTL of nothing', text: written('2', ...known, '0 1', 'claim') },
    { name: 'a negative length', text: '2 4 -1\ntur' },
    { name: 'a length that is no number', text: '2 4 x\nturn' },
    { name: 'a length with a dash behind', text: written('2', ...known, 'k', 'claim').replace(' 3 ', ' 3- ') },
    { name: 'two dashes for no claim', text: written('2', ...known, 'k', '').replace(' 0\n', ' --\n') },
  ])('is undefined for $name', ({ text }) => {
    expect(decodeTicket(text)).toBeUndefined()
  })
})
