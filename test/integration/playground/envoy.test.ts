import { beforeAll, describe, expect, test } from '@jest/globals'
import { findEnvoy } from '../../../playground/install/find-envoy.ts'
import type { ServerTool } from '../../../playground/install/find-tool.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startEnvoy } from '../../../playground/start-envoy.ts'

let tool: ServerTool
beforeAll(async () => {
  tool = await findEnvoy({ env: process.env, toolsDir: toolsDir(), report: (line) => console.log(line) })
}, 300_000)
describe('startEnvoy', () => {
  test('with a wrong configuration fails with Envoy’s output', async () => {
    await expect(startEnvoy({ tool, config: { text: 'static_resources: { listener: [] }' } })).rejects.toThrow(
      /envoy ended with exit code 1 .*'listener'/s,
    )
  })

  test('without an admin address is not ready', async () => {
    await expect(startEnvoy({ tool, config: { text: '{}' }, readyTimeoutMs: 500 })).rejects.toThrow(
      /envoy was not ready after 500 ms, .*admin address/,
    )
  })
})
