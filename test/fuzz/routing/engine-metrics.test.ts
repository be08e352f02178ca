import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseEngineMetrics } from '../../../src/routing/engine-metrics.ts'

const label = fc.tuple(fc.stringMatching(/^[a-z_]{1,8}$/), fc.string({ maxLength: 12 }))

const quote = (value: string): string =>
  `"${value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll(/[\n\r]/g, '\\n')}"`

const labels = fc
  .option(fc.array(label, { maxLength: 4 }), { nil: undefined })
  .map((pairs) => (pairs === undefined ? '' : `{${pairs.map(([name, value]) => `${name}=${quote(value)}`).join(',')}}`))

/** What an engine might say, whole or broken. */
const fragment = fc.oneof(
  fc.constantFrom('vllm:num_requests_running', 'llamacpp:requests_deferred', 'vllm:kv_cache_usage_perc', '# HELP x'),
  fc.constantFrom(' ', '{', '}', '"', '\\', '\n', '\r\n', '=', ',', '1', '0.5', '-3', 'NaN', '1e999', '\u0000', 'ä'),
  fc.string({ maxLength: 8 }),
)

describe('parseEngineMetrics', () => {
  test('reads a sample with any labels', () => {
    fc.assert(
      fc.property(labels, fc.nat({ max: 1_000_000 }), (text, value) => {
        expect(parseEngineMetrics(`x 1\nvllm:num_requests_waiting${text} ${value}.0\ny 2\n`).waiting).toBe(value)
      }),
    )
  })

  test('parses any text to finite numbers in range', () => {
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 60 }), (fragments) => {
        const { running, waiting, kvUsage } = parseEngineMetrics(fragments.join(''))
        expect(Math.min(running, waiting, kvUsage)).toBeGreaterThanOrEqual(0)
        expect(kvUsage).toBeLessThanOrEqual(1)
        expect(Number.isFinite(running + waiting)).toBe(true)
      }),
    )
  })
})
