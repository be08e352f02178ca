import { expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { envoyStat } from '../support/metrics.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { stack } = useScriptedStack({ env: { CTX_LOG_LEVEL: 'warn' } })

/** More than Node.js accepts of resets at once (1,000) plus what it forgives in the meantime (33 per second). */
const creates = 2_500
const atATime = 40

const stat = (name: string): Promise<number> => envoyStat(stack, `cluster.gateway.${name}`)

test(`${creates} creates in a row all succeed, and Envoy resets no stream`, async () => {
  const body = { model: 'scripted', prompt: 'x' }
  const statuses: number[] = []
  while (statuses.length < creates) {
    const batch = Array.from({ length: atATime }, () => call(`${stack.url}/v1/context`, { body }))
    statuses.push(...(await Promise.all(batch)).map(({ status }) => status))
  }

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(await stat('upstream_rq_tx_reset')).toBe(0)
  // Too many resets: the gateway closes the connection, its open streams fail, and Envoy tries them again.
  expect(await stat('upstream_cx_destroy_remote_with_active_rq')).toBe(0)
  expect(await stat('upstream_rq_retry')).toBe(0)
})
