import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { packageRoot } from '../../../playground/paths.ts'
import { model } from '../support/client.ts'
import { cacheLine, prompt, remove, storedSession, use, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** The engine asks for the key that the tests' clients send. */
const pods = embeddedPods({ count: 1, arguments: ['--api-key', 'test-key'] })
const modulePath = join(packageRoot(), 'examples/slot-files-connector.mjs')
const stack = useStack({ pods, env: { CTX_ENGINES_API_KEY: 'test-key', CTX_KV_CONNECTOR_MODULE: modulePath } })
const body = { model, prompt: prompt(20), max_tokens: 2 }

test('a gateway with a connector from a module stores a session and loads it, with the engines’ key', async () => {
  const id = await storedSession(stack, { body })
  const { kv } = await view(stack, id)
  const response = await use(stack, id, { body })
  expect(cacheLine(response)).toMatch(new RegExp(`^hit; tier=store; tokens=${kv.stored?.tokens}; load=\\d+ms$`))
  expect((await remove(stack, id)).status).toBe(200)
})
