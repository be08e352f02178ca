import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { llamaServers } from '../support/llama-servers.ts'
import { metric } from '../support/metrics.ts'
import { engineResponse, inferenceBodies, messagesEvent, streamedResponse } from '../support/scripted-responses.ts'
import { cacheLine, create, createdId, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack, useStack } from '../support/use-stack.ts'

/** As Claude Code sends it. */
const path = '/v1/messages?beta=true'
const body = inferenceBodies['/v1/messages']
const ttl = { 'x-session-ttl': '60' }
const large = `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`

describe.each(['lua', 'picker'] as const)('Anthropic’s messages, wired as %s', (wiring) => {
  const { stack, pod } = useScriptedStack({ wiring })

  const send = (to: string, request: Parameters<typeof call>[1] = {}) => call(`${stack.url}${to}`, request)

  test('are created, used and counted as turns of other paths are', async () => {
    pod.next(engineResponse({ prompt: 100, output: 3, cached: 0 }))
    const id = await createdId(stack, { path, body, headers: ttl })
    await untilTurns(stack, id, 1)
    pod.next(engineResponse({ prompt: 120, output: 5, cached: 100 }))

    const response = await use(stack, id, { path, body: { ...body, stream: true } })

    expect([response.status, response.headers.get('x-session-id')]).toEqual([200, id])
    expect(cacheLine(response)).toBe('none; reason=no_connector')
    const seen = await untilTurns(stack, id, 2)
    expect(seen.tokens).toEqual({ prompt: 220, output: 8, cached: 100 })
    const [last] = pod.requests().slice(-1)
    expect([last?.path, last && JSON.parse(last.body)]).toEqual([path, { ...body, stream: true }])
  })

  test.each([
    ['that ends before message_stop', streamedResponse('/v1/messages').slice(0, -1)],
    ['with an error', [messagesEvent('error', { error: { type: 'overloaded_error', message: 'x' } })]],
    ['with an error before its end', [messagesEvent('error', { error: {} }), messagesEvent('message_stop', {})]],
  ])('a stream %s is no turn', async (_name, pieces) => {
    const id = await createdId(stack, { path, body, headers: ttl })
    await untilTurns(stack, id, 1)
    const before = await metric(stack, 'turns_total', { outcome: 'incomplete' })
    pod.next((_request, reply) => {
      for (const piece of pieces) reply.write(piece)
      reply.end()
    })

    const response = await use(stack, id, { path, body: { ...body, stream: true } })

    expect(response.text).toBe(pieces.join(''))
    await eventually(async () => {
      expect(await metric(stack, 'turns_total', { outcome: 'incomplete' })).toBe(before + 1)
    })
    expect(await view(stack, id)).toMatchObject({ turns: 1 })
  })

  test.each<[string, Parameters<typeof call>[1] & { readonly to?: string }, number, object]>([
    ['a bad TTL', { headers: { 'x-session-ttl': 'x' } }, 400, { type: 'invalid_request_error', code: 'invalid_ttl' }],
    [
      'no credential',
      { headers: { authorization: '' } },
      401,
      { type: 'authentication_error', code: 'invalid_api_key' },
    ],
    [
      'another model',
      { body: { ...body, model: 'b' } },
      400,
      { type: 'invalid_request_error', code: 'model_mismatch' },
    ],
    ['no object', { rawBody: '[]' }, 400, { type: 'invalid_request_error', code: 'invalid_json' }],
    ['a path below', { to: '/v1/messages/x' }, 404, { type: 'not_found_error', code: 'unknown_path' }],
    ['a large body', { rawBody: large }, 413, { type: 'request_too_large', code: 'request_too_large' }],
  ])('an error for %s has Anthropic’s form', async (_name, { to = path, headers, ...request }, status, error) => {
    const id = await createdId(stack, { path, body, headers: ttl })

    const response = await send(to, { body, headers: { 'x-session-id': id, ...headers }, ...request })

    expect([response.status, response.body]).toMatchObject([status, { type: 'error', error }])
  })

  test.each([
    { method: 'HEAD', to: '/' },
    { method: 'GET', to: '/' },
    { method: 'GET', to: '/v1/models', atPod: true },
    { method: 'POST', to: '/v1/messages/count_tokens?beta=true', atPod: true, body },
  ])('$method $to, which Claude Code sends as well, is answered', async ({ method, to, atPod = false, ...rest }) => {
    const before = pod.requests().length
    if (atPod) pod.next((_request, reply) => reply.json(200, { input_tokens: 9 }))

    const response = await send(to, { method, ...rest })

    expect(response.status).toBe(200)
    expect(pod.requests().slice(before)).toMatchObject(atPod ? [{ method, path: to }] : [])
  })

  test('an error for no pod has Anthropic’s form', async () => {
    const before = pod.requests().length
    pod.otherwise((_request, reply) => reply.reset())

    const response = await create(stack, { path, body, headers: ttl })

    expect([response.status, response.body]).toMatchObject([503, { type: 'error', error: { type: 'api_error' } }])
    expect(pod.requests().length).toBeGreaterThan(before)
  })
})

describe('Anthropic’s messages at llama-server, which ignores the gateway’s fields there', () => {
  const stack = useStack({ pods: llamaServers([['--no-cache-prompt'], ['--no-cache-prompt']], { slots: 2 }) })

  test('are answered, hold no slot, and stay on their pod', async () => {
    const words = { ...body, messages: [{ role: 'user', content: 'word '.repeat(200) }] }
    const response = await create(stack, { path, body: words, headers: ttl })
    const id = response.headers.get('x-session-id') ?? ''
    expect([response.status, cacheLine(response)]).toEqual([200, 'miss; reason=new_session'])
    const { kv } = await untilTurns(stack, id, 1)

    for (const turns of [2, 3, 4]) {
      expect(cacheLine(await use(stack, id, { path, body: words }))).toBe('none; reason=fields_ignored')
      expect((await untilTurns(stack, id, turns)).kv).toEqual({ pod: kv.pod, stored: null, note: 'fields_ignored' })
    }
    expect((await view(stack, id)).tokens).toMatchObject({ cached: 0 })
    expect(await stack.kvFiles()).toEqual([])
  })
})
