import { describe, expect, test } from '@jest/globals'
import { startEnvoy } from '../../../playground/start-envoy.ts'

describe('startEnvoy', () => {
  const start = (text: string) =>
    startEnvoy({
      file: 'envoy.yaml',
      addresses: { listen: '127.0.0.1:0', pods: [], gateways: [] },
      change: () => text,
    })

  test('with a wrong configuration fails with Envoy’s output', async () => {
    await expect(start('static_resources: { listener: [] }')).rejects.toThrow(
      /envoy ended with exit code 1 .*'listener'/s,
    )
  })
})
