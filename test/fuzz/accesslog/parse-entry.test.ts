import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseEntry } from '../../../src/accesslog/parse-entry.ts'
import { entryOf, separator } from '../../unit/accesslog/log-entries.ts'

const anyNumber = fc.oneof(fc.integer(), fc.double(), fc.constantFrom('-', '1e400', '0x1')).map(String)

const anyCounts = fc.oneof(
  fc.json(),
  fc.constant('-'),
  fc
    .dictionary(
      fc.constantFrom('prompt_tokens', 'output_tokens', 'cached_tokens', 'input_tokens_details', 'prompt_n'),
      fc.oneof(fc.integer(), fc.double(), fc.record({ cached_tokens: fc.integer() })),
    )
    .map((counts) => JSON.stringify(counts)),
)

/** Entries with everything that is read, in any combination and of any kind. */
const anyEntry = fc
  .record(
    {
      ticket: fc.string(),
      requestKey: fc.string(),
      status: fc.oneof(anyNumber, fc.nat(999).map(String)),
      flags: fc.oneof(
        fc.string(),
        fc.array(fc.constantFrom('DC', 'DR', 'UF', 'UH', 'LR', 'RL', '')).map((flags) => flags.join()),
      ),
      upstreamAddress: fc.oneof(
        fc.string(),
        fc.tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(70_000)).map(([host, port]) => `${host}:${port}`),
      ),
      sentUs: anyNumber,
      answeredUs: anyNumber,
      stream: fc.oneof(fc.constantFrom('cut', 'done', 'failed'), fc.string()),
      usage: anyCounts,
      timings: anyCounts,
    },
    { requiredKeys: [] },
  )
  .map(entryOf)

/** Any number of parts with anything in them. */
const anyParts = fc.array(fc.string(), { maxLength: 12 }).map((parts) => parts.join(separator))

test('any entry is parsed as a valid turn, something else, or malformed, and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(anyEntry, anyParts), (entry) => {
      const parsed = parseEntry(entry)
      expect(['turn', 'disconnected', 'other', 'malformed']).toContain(parsed.kind)
      const turn = parsed.kind === 'turn' ? parsed.turn : undefined
      expect(turn === undefined || turn.ticket.length > 0).toBe(true)
      expect(turn?.complete === true && (turn.clientDisconnected || turn.upstreamFailed || turn.status === 0)).toBe(
        false,
      )
      expect(turn?.ttfbMs ?? 0).toBeGreaterThanOrEqual(0)
      expect(turn?.servedBy ?? 'a:1').toMatch(/.:\d{1,5}$/)
      for (const count of Object.values(turn?.usage ?? {})) expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
