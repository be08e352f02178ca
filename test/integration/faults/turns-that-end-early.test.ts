import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import { rawRequest } from '../support/raw-http.ts'
import { useScriptedStack } from '../support/use-stack.ts'

describe('a turn that ends before it reaches a pod', () => {
  const { stack } = useScriptedStack()
  let id: string

  beforeAll(async () => {
    const created = await call(`${stack.url}/v1/context`, { body: { model, prompt: 'a', max_tokens: 1 } })
    id = created.headers.get('x-session-id') ?? ''
    expect(id).not.toBe('')
  })
  // A lease would hold the session, and count, for minutes.
  const untilEnded = (outcome: string, turns: number) =>
    eventually(async () => {
      expect(await metric(stack, 'turns_in_flight')).toBe(0)
      expect(await metric(stack, 'turns_total', { outcome })).toBe(turns)
    })

  test.each([
    { name: 'names another model', body: { model: 'another', prompt: 'a' }, code: 'model_mismatch' },
    { name: 'is no object', body: [1], code: 'invalid_json' },
  ])('ends at once when its body $name', async ({ body, code }) => {
    const before = await metric(stack, 'turns_total', { outcome: 'engine_error' })
    const response = await call(`${stack.url}/v1/completions`, { headers: { 'x-session-id': id }, body })
    expect(response).toMatchObject({ status: 400, body: { error: { code } } })
    await untilEnded('engine_error', before + 1)
  })

  test('ends at once when its client leaves in the midst of its body', async () => {
    const before = await metric(stack, 'turns_total', { outcome: 'client_left' })
    const forwarded = await metric(stack, 'requests_total', { outcome: 'forwarded' })
    const socket = connect(stack.port, '127.0.0.1')
    await once(socket, 'connect')
    const headers = ['host: gateway', 'authorization: Bearer test-key', `x-session-id: ${id}`]
    const request = rawRequest({
      startLine: 'POST /v1/completions HTTP/1.1',
      headers: [...headers, 'content-type: application/json', 'content-length: 1000'],
      body: '{"model":',
    })
    socket.write(request)
    await eventually(async () =>
      expect(await metric(stack, 'requests_total', { outcome: 'forwarded' })).toBe(forwarded + 1),
    )
    socket.destroy()
    await untilEnded('client_left', before + 1)
  })
})
