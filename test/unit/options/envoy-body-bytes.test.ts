import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { envoyBodyBytes } from '../../../src/options/envoy-body-bytes.ts'

test.each([
  { file: 'envoy.yaml', limit: /(?:max_request_bytes|request_body_buffer_limit): (\d+)/g, unit: 1, places: 3 },
  { file: 'deploy/envoy/context-cache.lua', limit: /max_request_bytes = (\d+)/g, unit: 1, places: 1 },
  {
    file: 'deploy/envoy-gateway/context-cache.yaml',
    limit: /(?:bufferLimit|requestBuffer: \{ limit): (\d+)Mi/g,
    unit: 1024 * 1024,
    places: 4,
  },
])('$file lets through bodies of the size that the gateway knows', ({ file, limit, unit, places }) => {
  const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')
  const limits = [...text.matchAll(limit)].map(([, number]) => Number(number) * unit)
  expect(limits).toEqual(Array(places).fill(envoyBodyBytes))
})
