import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { ask, cacheHeader, numberedResponses } from '../responsecache/support.ts'
import { create, createdId, errorOf, untilTurns, use, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { pod, stack } = useScriptedStack({
  env: { CTX_RESPONSE_CACHE_MODELS: 'scripted', CTX_RESPONSE_CACHE_MAX_BYTES: '1000000' },
})

/** Two creates with the same body: whether they made one session. */
const makesOneSession = async (first: Record<string, string>, second: Record<string, string>): Promise<boolean> => {
  const body = { model: 'scripted', prompt: JSON.stringify(first), max_tokens: 2 }
  return (await createdId(stack, { body, headers: first })) === (await createdId(stack, { body, headers: second }))
}

test('through the forward_rules of envoy.yaml the gateway reads the headers of a create', async () => {
  const key = { 'idempotency-key': 'key' }

  expect(await makesOneSession(key, key)).toBe(true)
  expect(await makesOneSession({ 'x-stainless-retry-count': '0' }, { 'x-stainless-retry-count': '1' })).toBe(true)
  expect(errorOf(await create(stack, { headers: { 'content-type': 'text/plain' } }))).toMatchObject({
    code: 'unsupported_media_type',
  })
  expect(errorOf(await create(stack, { headers: { authorization: '' } }))).toMatchObject({ code: 'invalid_api_key' })
})

test.each(['x-api-key', 'api-key'])('through the forward_rules of envoy.yaml the gateway reads %s', async (name) => {
  const id = await createdId(stack)

  const seen = await fetch(`${stack.url}/v1/context/${id}`, { headers: { [name]: 'test-key' } })

  expect(seen.status).toBe(200)
})

test('through the forward_rules of envoy.yaml the gateway reads the headers of a turn', async () => {
  const id = await createdId(stack)
  await untilTurns(stack, id, 1)

  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  await use(stack, id, { headers: { 'x-session-ttl': '77', traceparent } })
  await untilTurns(stack, id, 2)

  expect((await view(stack, id)).ttl).toBe(77)
  await eventually(() =>
    expect(stack.output()).toMatch(/"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","requestId":"[\w-]{36}".*"turn"/),
  )
  expect(errorOf(await use(stack, id, { headers: { 'content-encoding': 'gzip' } }))).toMatchObject({
    code: 'unsupported_media_type',
  })
  expect(errorOf(await use(stack, id, { headers: { 'routing-strategy': 'none' } }))).toMatchObject({
    code: 'invalid_routing_strategy',
  })
})

test('through the forward_rules of envoy.yaml the gateway reads the headers of the response cache', async () => {
  pod.otherwise(numberedResponses())

  expect(cacheHeader(await ask(stack))).toBe('miss')
  await eventually(async () => expect(cacheHeader(await ask(stack))).toBe('hit'))
  expect(cacheHeader(await ask(stack, { headers: { 'cache-control': 'no-store' } }))).toBeNull()
})
