import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { missReasons } from '../../../src/context/response-headers.ts'
import { notStoredReasons } from '../../../src/kvcache/reasons.ts'
import { kvStoreFullStatus, kvTenantFullStatus } from '../../../src/sessions/limits.ts'

const page = readFileSync(new URL('../../../docs/presence.md', import.meta.url), 'utf8')

/** The rows of the table under a heading that begins so, as their cells. */
const rowsUnder = (heading: string): readonly (readonly string[])[] => {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading)) ?? ''
  return [...section.matchAll(/^\| (`.*) \|$/gm)].map(([, row = '']) => row.split(' | '))
}

describe('docs/presence.md', () => {
  test.each([
    { heading: 'Misses', reasons: missReasons },
    {
      heading: 'None',
      reasons: [...notStoredReasons, kvStoreFullStatus, kvTenantFullStatus, 'store_unavailable', 'response_cached'],
    },
  ])('has every reason under $heading once, and no other, with what to do', ({ heading, reasons }) => {
    const rows = rowsUnder(heading)
    expect(new Set(rows.map(([reason = '']) => reason.slice(1, -1)))).toEqual(new Set(reasons))
    expect(rows).toHaveLength(reasons.length)
    expect(rows.filter((cells) => cells.length !== 3 || cells.some((cell) => cell === ''))).toEqual([])
  })
})
