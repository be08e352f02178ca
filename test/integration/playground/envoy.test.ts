import { describe, expect, test } from '@jest/globals'
import { startEnvoy } from '../../../playground/start-envoy.ts'

describe('startEnvoy', () => {
  test('with a wrong configuration fails with Envoy’s output', async () => {
    await expect(startEnvoy({ config: { text: 'static_resources: { listener: [] }' } })).rejects.toThrow(
      /envoy ended with exit code 1 .*'listener'/s,
    )
  })

  test('without an admin address is not ready', async () => {
    await expect(startEnvoy({ config: { text: '{}' }, readyTimeoutMs: 500 })).rejects.toThrow(
      /envoy was not ready after 500 ms, .*admin address/,
    )
  })
})
