import { expect, test } from '@jest/globals'
import { model } from '../support/client.ts'
import { readMetric } from '../support/metrics.ts'
import { cacheLine, createdId, untilStored, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { inUse } from './support.ts'

const stack = useStack({
  pods: embeddedPods({ count: 2, slots: 2 }),
  env: {
    CTX_ROUTING_POLICY: 'round-robin',
    CTX_ADMISSION_REQUIREMENTS: 'load=disk:1',
    CTX_ADMISSION_GLOBAL_RESOURCES: 'disk',
  },
})

const body = { model, prompt: 'Where does this run, and for how long?', max_tokens: 1 }

test('a load into another pod takes its resources, and frees them at its end', async () => {
  const id = await createdId(stack, { body })
  await untilStored(stack, id, 1)
  expect(cacheLine(await use(stack, id, { body }))).toMatch(/^hit; tier=store; /)
  const waits = await readMetric(stack, 'admission_wait_seconds_count')
  expect(waits).toEqual({ 'kind="load",outcome="admitted"': 1 })
  expect(await inUse(stack)).toBe(0)
})
