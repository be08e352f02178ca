import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { packageRoot } from '../../../playground/paths.ts'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { cacheLine, createdId, remove, storedSession, untilTurns, use, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const modulePath = join(packageRoot(), 'examples/slot-files-connector.mjs')
const stack = useStack({
  // The engine asks for the key that the tests' clients send.
  pods: embeddedPods({ count: 1, arguments: ['--api-key', 'test-key'] }),
  env: { CTX_ENGINES_API_KEY: 'test-key', CTX_KV_CONNECTOR_MODULE: modulePath },
})

test('a gateway with a connector from a module stores a session and loads it, with the engines’ key', async () => {
  const id = await storedSession(stack)
  const { kv } = await view(stack, id)
  expect(cacheLine(await use(stack, id))).toMatch(
    new RegExp(`^hit; tier=store; tokens=${kv.stored?.tokens}; load=\\d+ms$`),
  )
  expect((await remove(stack, id)).status).toBe(200)
})

test('with another key turns are answered without stored KV, and the log, /readyz and a metric say why, without the key', async () => {
  await stack.gateway().child.stop()
  await stack.restartGateway(0, { CTX_ENGINES_API_KEY: 'a-wrong-key', CTX_KV_CONNECTOR_MODULE: '' })
  const id = await eventually(() => createdId(stack))
  await untilTurns(stack, id, 1)
  const turn = await use(stack, id)
  expect([turn.status, cacheLine(turn)]).toEqual([200, expect.stringMatching(/^miss; reason=/)])
  const text = expect.stringMatching(`^The engine ${stack.pods[0]?.address} refuses .*401.*set engines.apiKey$`)
  const ready = await call(`${stack.gateway().adminUrl}/readyz`)
  expect(ready).toMatchObject({ status: 200, body: { ready: true, warnings: [{ text }] } })
  expect(await metric(stack, 'warnings', { kind: 'engine_unauthorized' })).toBe(1)
  await eventually(() => expect(stack.output().match(/refuses the gateway's key/g)).toHaveLength(1))
  const config = await call(`${stack.gateway().adminUrl}/config`)
  expect(config.text + stack.output()).not.toContain('a-wrong-key')
})
