import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { attributes } from '../../../src/tracing/attributes.ts'

test('docs/traces.md contains the table of the code', () => {
  const page = readFileSync(new URL('../../../docs/traces.md', import.meta.url), 'utf8')
  const [, table = ''] = /<!-- attributes -->\n([\s\S]*)\n<!-- \/attributes -->/.exec(page) ?? []
  const rows = Object.entries(attributes).map(([name, { spans, meaning }]) => {
    const shown = spans.map((span) => `\`${span}\``)
    return `| \`${name}\` | ${shown.join(', ')} | ${meaning} |`
  })
  expect(table.split('\n').slice(2)).toEqual(rows)
})
