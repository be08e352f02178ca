import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { compiledFilter } from './compiled-filter.ts'

const linesOf = async (file: string): Promise<readonly string[]> =>
  (await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')).split('\n')

/** The accelerator keeps the ticket in filter state, since header_to_metadata ignores values of more than 8 KB. */
const ticket = /%COALESCE\(\{.*wasm\.turn:PLAIN.*\}\)%/

test('accelerated.yaml is envoy.yaml with some 30 lines added, and another source of the ticket', async () => {
  const rest = [...(await linesOf('envoy.yaml'))]
  const added: string[] = []
  for (const line of await linesOf('deploy/envoy/accelerated.yaml')) {
    if (line.replace(ticket, '%DYNAMIC_METADATA(ctx:turn)%') === rest[0]) rest.shift()
    else added.push(line)
  }
  // The first line of envoy.yaml that accelerated.yaml lacks.
  expect(rest[0]).toBeUndefined()
  expect(added.length).toBeLessThanOrEqual(40)
  expect(added[0]).toContain('accelerator')
})

test('deploy/envoy-gateway/accelerator.yaml names the checksum of the filter', async () => {
  const sha256 = createHash('sha256')
    .update(await compiledFilter())
    .digest('hex')
  expect(await linesOf('deploy/envoy-gateway/accelerator.yaml')).toContain(`          sha256: ${sha256}`)
})
