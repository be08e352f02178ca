import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { toolsDir } from '../../../playground/paths.ts'
import { startLlamaServer } from '../../support/start-llama-server.ts'
import { call, model } from '../support/client.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({
  pods: async (kvDirectory) => {
    const modelPath = await randomModelPath(`${toolsDir()}/models`)
    const start = (name: string, cacheMebibytes: number) =>
      startLlamaServer({
        name,
        kvDirectory,
        slots: 2,
        contextTokensPerSlot: 4096,
        modelPath,
        modelNames: [model],
        extraArguments: ['--grammar', 'root ::= [a-z ,.]+', '--cache-ram', `${cacheMebibytes}`],
      })
    return [await start('pod-0', 64), await start('pod-1', 0), ...(await embeddedPods({ count: 1 })(kvDirectory))]
  },
})

const readiness = z.object({ ready: z.boolean(), warnings: z.array(z.object({ text: z.string() })) })

test('an engine that keeps prompts outside of its slots is named in the log and in /readyz, and stays in use', async () => {
  const { status, body } = await call(`${stack.gateway().adminUrl}/readyz`)
  const { ready, warnings } = readiness.parse(body)
  const reasons = warnings.map(({ text }) => text)
  const metrics = await call(`${stack.gateway().adminUrl}/metrics`)

  expect([status, ready]).toEqual([200, true])
  expect(reasons).toEqual([expect.stringContaining(`The engine ${stack.pods[0]?.address} keeps prompts in memory`)])
  expect(
    stack
      .output()
      .split('\n')
      .filter((line) => line.includes(reasons[0] ?? '')),
  ).toHaveLength(1)
  expect(metrics.text).toContain('context_cache_warnings{kind="engine_shares_kv"} 1')
})
