import { describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { openai } from '../support/openai-client.ts'
import { unknownId } from '../support/sessions.ts'
import { fixture } from './shared-fixture.ts'
import { anyResponse, expectPassedOn, reading, someBody, watching } from './support.ts'

/** How often the gateway was asked, by Envoy's account and by its own. */
const asked = async (): Promise<unknown> => {
  const { stack } = fixture
  const stats = await call(`http://${stack.envoy.adminAddress}/stats?filter=ext_proc`)
  const metrics = await call(`${stack.gateway().adminUrl}/metrics`)
  return [
    ...(stats.text.match(/^.*ext_proc\.(streams_started|stream_msgs_sent): \d+$/gm) ?? []),
    ...(metrics.text.match(/^context_cache_requests_total\{.*$/gm) ?? []),
  ]
}

test('a request that has to do with sessions meets the gateway, and the counts show it', async () => {
  const before = await asked()

  await call(`${fixture.stack.url}/v1/context`)

  expect(await asked()).not.toEqual(before)
})

describe('a request without a session', () => {
  test.each([
    { name: 'completions', method: 'POST', path: '/v1/completions', body: someBody },
    { name: 'chat completions', method: 'POST', path: '/v1/chat/completions', body: { ...someBody, messages: [] } },
    { name: 'responses', method: 'POST', path: '/v1/responses', body: { ...someBody, input: 'x' } },
    { name: 'a stream', method: 'POST', path: '/v1/completions', body: { ...someBody, stream: true } },
    { name: 'the models', method: 'GET', path: '/v1/models', body: undefined },
    { name: 'a model', method: 'GET', path: '/v1/models/tiny-random?verbose=1', body: undefined },
    { name: 'embeddings', method: 'POST', path: '/v1/embeddings', body: someBody },
    { name: 'a model with a slash in its name', method: 'GET', path: '/v1/models/org%2Ftiny-1.5', body: undefined },
    { name: 'a score', method: 'POST', path: '/v1/score', body: someBody },
    { name: 'a ranking', method: 'POST', path: '/v1/rerank', body: someBody },
    { name: 'messages', method: 'POST', path: '/v1/messages', body: someBody },
    { name: 'a count of tokens', method: 'POST', path: '/v1/messages/count_tokens', body: someBody },
    { name: 'a transcription', method: 'POST', path: '/v1/audio/transcriptions', body: someBody },
    { name: 'a translation', method: 'POST', path: '/v1/audio/translations', body: someBody },
  ])('never meets the gateway: $name', async ({ method, path, body }) => {
    const before = await asked()

    const { result, arrivals } = await watching(fixture, () =>
      call(`${fixture.stack.url}${path}`, { method, ...(body === undefined ? {} : { body }) }),
    )

    expectPassedOn(reading(result))
    expect(arrivals).toMatchObject([{ request: { method, path } }])
    expect(await asked()).toEqual(before)
  })

  test('never meets the gateway from the SDK either', async () => {
    const before = await asked()
    const client = openai(fixture.stack.url)

    await client.completions.create({ ...someBody })
    await client.responses.create({ model: 'tiny-random', input: 'x' })

    expect(await asked()).toEqual(before)
  })

  test('never meets it for a session header on a path that knows none', async () => {
    const before = await asked()

    await call(`${fixture.stack.url}/v1/models`, { headers: { 'x-session-id': unknownId, 'x-session-ttl': '60' } })

    expect(await asked()).toEqual(before)
  })

  test('reaches the pod unchanged, and its response reaches the client unchanged', async () => {
    const rawBody = ' { "prompt" : "\\u00e9" ,\n "id_slot":3, "cache_salt": "mine" } '
    for (const pod of fixture.pods)
      pod.otherwise((_request, reply) => reply.json(418, { mine: true }, { 'x-pod': 'a' }))

    const { result, arrivals } = await watching(fixture, () =>
      call(`${fixture.stack.url}/v1/completions`, { rawBody, headers: { 'x-mine': 'kept' } }),
    )

    for (const pod of fixture.pods) pod.otherwise(anyResponse)
    expect(arrivals).toMatchObject([
      { request: { body: rawBody, headers: { 'x-mine': 'kept', authorization: 'Bearer test-key' } } },
    ])
    expect([result.status, result.text, result.headers.get('x-pod')]).toEqual([418, '{"mine":true}', 'a'])
  })
})

describe('an x-session-id of another form', () => {
  test('leads to the same pod every time, and different ones to different pods', async () => {
    const podOf = async (id: string): Promise<string | undefined> => {
      const headers = { 'x-session-id': id }
      const { arrivals } = await watching(fixture, () =>
        call(`${fixture.stack.url}/v1/completions`, { headers, body: someBody }),
      )
      return arrivals[0]?.pod
    }
    const ids = Array.from({ length: 16 }, (_, index) => `conversation-${index}`)
    const first: (string | undefined)[] = []
    for (const id of ids) first.push(await podOf(id))
    const second: (string | undefined)[] = []
    for (const id of [...ids].reverse()) second.unshift(await podOf(id))

    expect(second).toEqual(first)
    expect(new Set(first)).toEqual(new Set(fixture.pods.map((pod) => pod.address)))
  })
})
