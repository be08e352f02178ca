import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { call } from '../support/client.ts'
import { llamaServers } from '../support/llama-servers.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const startServers = llamaServers([['--cache-ram', '64'], ['--no-cache-prompt'], ['--no-slots'], []], { slots: 2 })

const stack = useStack({
  pods: async (kvDirectory) => [
    ...(await startServers(kvDirectory)),
    ...(await embeddedPods({ count: 1 })(kvDirectory)),
  ],
})

const readiness = z.object({ ready: z.boolean(), warnings: z.array(z.object({ text: z.string() })) })

test('engines that keep prompts outside of slots, or save none, are in the log and /readyz, and in use', async () => {
  const { status, body } = await call(`${stack.gateway().adminUrl}/readyz`)
  const { ready, warnings } = readiness.parse(body)
  const reasons = warnings.map(({ text }) => text)
  const metrics = await call(`${stack.gateway().adminUrl}/metrics`)

  expect([status, ready]).toEqual([200, true])
  expect(reasons).toHaveLength(3)
  expect(reasons.join()).toContain(`The engine ${stack.pods[0]?.address} keeps prompts in memory`)
  expect(reasons.join()).toContain(`The engine ${stack.pods[2]?.address} has no slots that can be saved`)
  expect(reasons.join()).toContain(`The engine ${stack.pods[3]?.address} starts requests on /v1/messages from KV`)
  const lines = stack.output().split('\n')
  for (const reason of reasons) expect(lines.filter((line) => line.includes(reason))).toHaveLength(1)
  expect(metrics.text).toContain('context_cache_warnings{kind="engine_shares_kv"} 2')
  expect(metrics.text).toContain('context_cache_warnings{kind="engine_saves_nothing"} 1')
})
