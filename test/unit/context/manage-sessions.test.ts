import { describe, expect, test } from '@jest/globals'
import { newSessionId, sessionKeyOf } from '../../../src/context/session-id.ts'
import {
  type ContextGateway,
  createContextGateway,
  gatewayWithSession,
  nothingLeft,
  type SentRequest,
} from '../../support/context-gateway.ts'
import { answerBody, rejection, sessionIdOf } from '../../support/decisions.ts'

const get = (gateway: ContextGateway, id: string) => gateway.send({ method: 'GET', path: `/v1/context/${id}` })

describe('GET /v1/context/{id}', () => {
  test('shows the session and its tokens, and nothing of its prompts', async () => {
    const { gateway, id } = await gatewayWithSession(
      {},
      { headers: { 'x-session-ttl': '7200' } },
      { promptTokens: 500 },
    )
    const forward = await gateway.use(id)
    await gateway.serve(forward, { promptTokens: 600 })

    const shown = answerBody(await get(gateway, id))

    expect(shown).toEqual({
      id,
      object: 'context',
      named_by: null,
      prompts: 1,
      digest: sessionKeyOf(id).slice(0, 8),
      model: 'm',
      created_at: 1_754_006_400,
      expires_at: 1_754_006_400 + 7200,
      ttl: 7200,
      turns: 2,
      tokens: { prompt: 1100, output: 40, cached: 520 },
      kv: { pod: forward.destinations[0], stored: { tokens: 620, bytes: 62_000, turn: 2 }, note: null },
    })
    expect(JSON.stringify(shown)).not.toContain('Say this is a test')
  })

  test('shows a session whose first turn still runs', async () => {
    const gateway = createContextGateway()
    const create = await gateway.beginCreate()

    const shown = answerBody(await get(gateway, sessionIdOf(create)))

    expect(shown).toMatchObject({
      turns: 0,
      tokens: { prompt: 0, output: 0, cached: 0 },
      kv: { pod: create.destinations[0], stored: null, note: null },
    })
  })

  test('ignores a query', async () => {
    const { gateway, id } = await gatewayWithSession()

    expect(answerBody(await get(gateway, `${id}?x=../y`))).toMatchObject({ id })
  })
})

describe('a path that names no session', () => {
  test.each(['GET', 'PATCH', 'DELETE'])('is not found by %s, for any id', async (method) => {
    const gateway = createContextGateway()
    const ids = [newSessionId(), 'session-01', '..%2f..', '%', '%00', 'ctx_', `ctx_${'a'.repeat(50_000)}`, '__proto__']

    const request = { method, body: { ttl: 60 } }
    const codeOf = async (id: string) => rejection(await gateway.send({ ...request, path: `/v1/context/${id}` })).code

    expect(await Promise.all(ids.map(codeOf))).toEqual(ids.map(() => 'session_not_found'))
  })

  test('is not found while the session store is unavailable', async () => {
    const gateway = createContextGateway()
    gateway.store.breakDown('all')

    expect(rejection(await get(gateway, 'session-01')).code).toBe('session_not_found')
  })
})

describe('PATCH /v1/context/{id}', () => {
  const media = (param: string) => ({ body: { ttl: 60 }, code: 'unsupported_media_type', param })

  test('counts the new TTL from now', async () => {
    const { gateway, id } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
    gateway.advance(50)

    const changed = answerBody(await gateway.send({ method: 'PATCH', path: `/v1/context/${id}`, body: { ttl: 120 } }))
    gateway.advance(119)

    expect(changed).toMatchObject({ id, object: 'context', ttl: 120, expires_at: 1_754_006_400 + 170 })
    expect(answerBody(await get(gateway, id))).toEqual(changed)
  })

  test.each<Pick<SentRequest, 'body' | 'headers'> & { name: string; code: string; param: string | undefined }>([
    { name: 'no ttl', body: {}, code: 'missing_required_parameter', param: 'ttl' },
    { name: 'ttl too short', body: { ttl: 9 }, code: 'ttl_out_of_range', param: 'ttl' },
    { name: 'ttl too long', body: { ttl: 86_401 }, code: 'ttl_out_of_range', param: 'ttl' },
    { name: 'a list', body: [{ ttl: 60 }], code: 'invalid_json', param: undefined },
    { name: 'no JSON', body: Buffer.from('ttl=60'), code: 'invalid_json', param: undefined },
    { name: 'no body', body: undefined, code: 'invalid_json', param: undefined },
    { name: 'a form', headers: { 'content-type': 'application/x-www-form-urlencoded' }, ...media('content-type') },
    { name: 'gzip', headers: { 'content-encoding': 'gzip' }, ...media('content-encoding') },
  ])('refuses $name', async ({ headers = {}, body, code, param }) => {
    const { gateway, id } = await gatewayWithSession()

    const error = rejection(await gateway.send({ method: 'PATCH', path: `/v1/context/${id}`, headers, body }))

    expect({ code: error.code, param: error.param }).toEqual({ code, param })
    expect(answerBody(await get(gateway, id))).toMatchObject({ ttl: 3600 })
  })
})

describe('DELETE /v1/context/{id}', () => {
  test('removes the session and its KV everywhere before it answers', async () => {
    const { gateway, id } = await gatewayWithSession()

    const answer = await gateway.remove(id)

    const body = { id, object: 'context.deleted', deleted: true }
    expect(answer).toEqual({ kind: 'response', status: 200, headers: {}, body })
    expect(await gateway.leftovers()).toEqual(nothingLeft)
  })
})

describe('methods and credentials', () => {
  test.each([
    { method: 'PUT', path: '/v1/context', allow: 'GET, POST' },
    { method: 'DELETE', path: '/v1/context', allow: 'GET, POST' },
    { method: 'PATCH', path: '/v1/context', allow: 'GET, POST' },
    { method: 'HEAD', path: '/v1/context', allow: 'GET, POST' },
    { method: 'POST', path: `/v1/context/${newSessionId()}`, allow: 'GET, PATCH, DELETE' },
    { method: 'PUT', path: `/v1/context/${newSessionId()}`, allow: 'GET, PATCH, DELETE' },
    { method: 'OPTIONS', path: '/v1/context/x', allow: 'GET, PATCH, DELETE' },
  ])('$method $path is not allowed', async ({ method, path, allow }) => {
    expect(rejection(await createContextGateway().send({ method, path, body: {} }))).toMatchObject({
      code: 'method_not_allowed',
      status: 405,
      headers: { allow },
    })
  })

  test.each([
    { method: 'GET', path: '/v1/context' },
    { method: 'GET', path: `/v1/context/${newSessionId()}` },
    { method: 'PATCH', path: `/v1/context/${newSessionId()}` },
    { method: 'DELETE', path: `/v1/context/${newSessionId()}` },
    { method: 'DELETE', path: '/v1/context/no-id' },
  ])('$method $path needs a credential', async ({ method, path }) => {
    const decision = await createContextGateway().send({ method, path, headers: { authorization: [] } })

    expect(rejection(decision)).toMatchObject({ code: 'invalid_api_key', status: 401 })
  })
})
