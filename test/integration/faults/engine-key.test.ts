import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { cacheLine, createdId, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** The engines ask for the key that the tests' clients send. */
const pods = embeddedPods({ count: 1, arguments: ['--api-key', 'test-key'] })

describe('with another key', () => {
  const stack = useStack({ pods, env: { CTX_ENGINES_API_KEY: 'a-wrong-key' } })

  test('turns are answered without stored KV, and the log, /readyz and a metric say why, without the key', async () => {
    const id = await createdId(stack)
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
})
