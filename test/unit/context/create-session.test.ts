import { describe, expect, test } from '@jest/globals'
import { isSessionId, sessionKeyOf } from '../../../src/context/session-id.ts'
import { createContextGateway, podA, podB, promptBody } from '../../support/context-gateway.ts'
import { cacheStatusOf, forwarded, rejection, sessionIdOf, ticketOf } from '../../support/decisions.ts'

const messages = [{ role: 'user', content: 'hi' }]

describe('creating a session on /v1/context', () => {
  test.each([
    { name: 'prompt', body: { model: 'm', prompt: 'hi' }, path: '/v1/completions' },
    { name: 'messages', body: { model: 'm', messages }, path: '/v1/chat/completions' },
    { name: 'input', body: { model: 'm', input: 'hi', stream: true }, path: '/v1/responses' },
  ])('sends a body with $name to $path', async ({ body, path }) => {
    const gateway = createContextGateway()

    const forward = forwarded(await gateway.send({ path: '/v1/context', body }))

    expect(forward.path).toBe(path)
    expect([podA, podB]).toContain(forward.destinations[0])
    expect([...forward.destinations].sort()).toEqual([podA, podB])
  })

  test('sends the session id to the client and to the engine', async () => {
    const gateway = createContextGateway()

    const { responseHeaders, requestHeaders } = forwarded(
      await gateway.send({ path: '/v1/context', body: promptBody, headers: { 'x-session-ttl': '60' } }),
    )
    const id = responseHeaders['x-session-id'] ?? ''

    expect(isSessionId(id)).toBe(true)
    expect(requestHeaders).toEqual({ 'x-session-id': id })
    expect(responseHeaders).toEqual({
      'x-session-id': id,
      'x-session-ttl': '60',
      'x-session-expires-at': '2025-08-01T00:01:00.000Z',
      'x-context-cache': 'miss; reason=new_session',
    })
  })

  test('makes a new session when the request has an x-session-id', async () => {
    const gateway = createContextGateway()
    const { id } = await gateway.create()

    const forward = forwarded(
      await gateway.send({ path: '/v1/context', body: promptBody, headers: { 'x-session-id': id } }),
    )

    expect(forward.responseHeaders['x-session-id']).not.toBe(id)
    expect(forward.requestHeaders['x-session-id']).toBe(forward.responseHeaders['x-session-id'])
  })

  test('splices the fields that isolate the KV of the session', async () => {
    const gateway = createContextGateway()

    const forward = await gateway.beginCreate()
    const key = sessionKeyOf(sessionIdOf(forward))

    expect(JSON.parse(`{${forward.splice}}`)).toEqual({ kv_session: key })
    expect(forward.expectModel).toBeUndefined()
  })

  test('returns a ticket without the raw session id', async () => {
    const gateway = createContextGateway()

    const forward = await gateway.beginCreate()
    const id = sessionIdOf(forward)

    expect(ticketOf(forward)).toMatchObject({
      pod: forward.destinations[0],
      session: { key: sessionKeyOf(id), model: 'm', expiry: { kind: 'keep' } },
    })
    const text = JSON.stringify(forward.ticket)
    expect(text).not.toContain(id.slice(4))
    expect(text).not.toContain('key-a')
  })

  test('uses the policy in routing-strategy', async () => {
    const gateway = createContextGateway()
    const create = () =>
      gateway.send({ path: '/v1/context', body: promptBody, headers: { 'routing-strategy': 'round-robin' } })

    const pods = [forwarded(await create()), forwarded(await create())].map(({ destinations }) => destinations[0])

    expect(new Set(pods).size).toBe(2)
  })

  test('rejects an unknown policy and lists the known ones', async () => {
    const gateway = createContextGateway()

    const error = rejection(
      await gateway.send({ path: '/v1/context', body: promptBody, headers: { 'routing-strategy': 'fastest' } }),
    )

    expect(error).toMatchObject({ code: 'invalid_routing_strategy', param: 'routing-strategy' })
    expect(error.message).toContain(
      'predicted-ttft, prefix-cache, session-affinity, least-request, least-kv-cache, round-robin, random',
    )
    expect(await gateway.store.counts()).toMatchObject({ sessions: 0 })
  })

  test('forwards without a cache when the pod has no room for another session', async () => {
    const gateway = createContextGateway({ pods: [podA], sessionsPerPod: 1, messageTimeoutMs: 0 })
    await gateway.send({ path: '/v1/context', body: promptBody })

    const forward = await gateway.beginCreate()
    await gateway.serve(forward)

    expect(forward.splice).toBeUndefined()
    const session = await gateway.view(sessionIdOf(forward))
    expect(session).toMatchObject({ turns: 1, kv: { stored: null, note: 'no_slot' } })
  })
})

describe('creating a session on an inference path', () => {
  test.each([
    { path: '/v1/completions', body: { model: 'm', prompt: 'hi' } },
    { path: '/v1/chat/completions', body: { model: 'm', messages } },
    { path: '/v1/responses?stream=1', body: { model: 'm', input: 'hi' } },
  ])('keeps $path and creates the same way', async ({ path, body }) => {
    const gateway = createContextGateway()

    const forward = forwarded(await gateway.send({ path, body, headers: { 'x-session-ttl': '60' } }))
    await gateway.serve(forward)

    expect(forward.path).toBeUndefined()
    expect(cacheStatusOf(forward)).toBe('miss; reason=new_session')
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })
})

describe('a create', () => {
  test.each([
    { name: 'no content type', headers: { 'content-type': [] }, param: 'content-type' },
    { name: 'a form', headers: { 'content-type': 'application/x-www-form-urlencoded' }, param: 'content-type' },
    { name: 'text', headers: { 'content-type': 'text/plain' }, param: 'content-type' },
    { name: 'something like JSON', headers: { 'content-type': 'application/jsonl' }, param: 'content-type' },
    {
      name: 'two content types',
      headers: { 'content-type': ['application/json', 'application/json'] },
      param: 'content-type',
    },
    { name: 'gzip', headers: { 'content-encoding': 'gzip' }, param: 'content-encoding' },
    { name: 'gzip behind identity', headers: { 'content-encoding': ['identity', 'gzip'] }, param: 'content-encoding' },
  ])('is rejected with $name', async ({ headers, param }) => {
    const error = rejection(await createContextGateway().send({ path: '/v1/context', body: promptBody, headers }))

    expect(error).toMatchObject({ code: 'unsupported_media_type', status: 415, param })
  })

  test.each([
    { name: 'a charset', headers: { 'content-type': 'application/json; charset=utf-8' } },
    { name: 'capitals', headers: { 'content-type': 'Application/JSON' } },
    { name: 'a JSON type of its own', headers: { 'content-type': 'application/vnd.api+json' } },
    { name: 'identity', headers: { 'content-encoding': 'identity' } },
  ])('is forwarded with $name', async ({ headers }) => {
    const decision = await createContextGateway().send({ path: '/v1/context', body: promptBody, headers })

    expect(decision.kind).toBe('forward')
  })
})
