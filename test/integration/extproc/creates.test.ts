import { buffer } from 'node:stream/consumers'
import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { envoyStat } from '../support/metrics.ts'
import { openRaw, readMessages } from '../support/raw-http.ts'
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

test('a create asks the gateway when its body is there: a client that holds it back holds no stream', async () => {
  const body = JSON.stringify({ model: 'scripted', prompt: 'x' })
  const asked = await stat('upstream_rq_total')
  const headers = ['host: gateway', 'connection: close', 'authorization: Bearer test-key', 'x-session-ttl: 60']
  const startLines = ['POST /v1/context HTTP/1.1', 'POST /v1/completions HTTP/1.1']
  const length = ['content-type: application/json', `content-length: ${body.length}`]
  const sockets = await Promise.all(
    startLines.map((startLine) => openRaw(stack.port, { startLine, headers: [...headers, ...length] })),
  )
  await eventually(async () => expect(await envoyStat(stack, 'http.clients.downstream_rq_active')).toBe(2))
  expect(await stat('upstream_rq_total')).toBe(asked)

  for (const socket of sockets) socket.write(body)
  const answers = await Promise.all(sockets.map(async (socket) => readMessages(await buffer(socket))[0]?.startLine))
  expect(answers).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK'])
  expect(await stat('upstream_rq_total')).toBe(asked + 2)
})
