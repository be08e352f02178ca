import { describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { createdId, unknownId, untilGone, view } from '../support/sessions.ts'
import { bounds } from './fixture.ts'
import { fixture } from './shared-fixture.ts'
import { asJson, askRaw, credential, expectRefusal, reading, wellFramed } from './support.ts'

describe('a session that is not there', () => {
  const change = { body: { ttl: 60 } }
  const managing = [
    { method: 'GET', request: {} },
    { method: 'PATCH', request: change },
    { method: 'DELETE', request: {} },
  ] as const

  const expectNotFound = async (id: string, credentials: Record<string, string> = {}): Promise<void> => {
    for (const { method, request } of managing) {
      const response = await call(`${fixture.stack.url}/v1/context/${id}`, { method, headers: credentials, ...request })
      expectRefusal(reading(response), { status: 404, code: 'session_not_found' })
    }
  }

  test('because it never was', async () => {
    await expectNotFound(unknownId)
  })

  test('because it has expired', async () => {
    const id = await createdId(fixture.stack, { headers: { 'x-session-ttl': String(bounds.min) } })

    await untilGone(fixture.stack, id)

    await expectNotFound(id)
  })

  test('because it was deleted', async () => {
    const id = await createdId(fixture.stack)

    const deleted = await call(`${fixture.stack.url}/v1/context/${id}`, { method: 'DELETE' })

    expect([deleted.status, deleted.body]).toEqual([200, { id, object: 'context.deleted', deleted: true }])
    await expectNotFound(id)
  })

  test('because it is another tenant’s', async () => {
    const before = await view(fixture.stack, fixture.sessionId)

    await expectNotFound(fixture.sessionId, { authorization: 'Bearer another-key' })

    expect(await view(fixture.stack, fixture.sessionId)).toEqual(before)
  })

  const ids = [
    { name: 'encoded slashes', id: '..%2f..' },
    { name: 'encoded dots', id: '%2e%2e%2f' },
    { name: 'a percent sign', id: '%' },
    { name: 'a broken escape', id: '%zz' },
    { name: 'a parameter', id: ';x' },
    { name: 'a quote', id: "'" },
    { name: 'the prefix alone', id: 'ctx_' },
    { name: 'one character too few', id: `ctx_${'a'.repeat(31)}` },
    { name: 'one character too many', id: `ctx_${'a'.repeat(33)}` },
    { name: 'another case', id: `CTX_${'a'.repeat(32)}` },
    { name: 'an encoded blank at the end', id: `${unknownId}%20` },
    { name: 'an encoded dot at the end', id: `${unknownId}%2e` },
    { name: 'a query', id: `${unknownId}?x=1` },
    { name: 'an empty query', id: `${unknownId}?` },
    { name: '8 KB', id: 'x'.repeat(8000) },
  ]

  test.each(['GET', 'PATCH', 'DELETE'].flatMap((method) => ids.map((value) => ({ method, ...value }))))(
    'because the id is none: $name ($method)',
    async ({ method, id }) => {
      const body = method === 'PATCH' ? { body: '{"ttl":60}' } : {}
      const request = wellFramed(`${method} /v1/context/${id}`, { headers: [credential, asJson], ...body })

      await fixture.expectRefused(() => askRaw(fixture.stack, request), { status: 404, code: 'session_not_found' })
    },
  )

  test.each(['/', '/a/b', `/${unknownId}/`, '/.', '/%2e'])('because %s leads nowhere', async (path) => {
    const request = wellFramed(`DELETE /v1/context${path}`, { headers: [credential] })

    await fixture.expectRefused(() => askRaw(fixture.stack, request), { status: 404, code: 'unknown_path' })
  })

  test.each(['%00', `${unknownId}%00`, `${unknownId}#x`])('because %s is no path', async (id) => {
    const request = wellFramed(`DELETE /v1/context/${id}`, { headers: [credential] })

    await fixture.expectRefused(() => askRaw(fixture.stack, request), { status: 400, code: 'bad_request' })
  })
})

describe('PATCH /v1/context/{id}', () => {
  test.each([
    { name: 'no ttl', body: '{}', refusal: { code: 'missing_required_parameter', param: 'ttl' } },
    { name: 'an infinite number', body: '{"ttl":1e400}', refusal: { code: 'invalid_ttl', param: 'ttl' } },
    { name: 'too much', body: '{"ttl":86401}', refusal: { code: 'ttl_out_of_range', param: 'ttl' } },
    { name: 'no body', body: '', refusal: { code: 'invalid_json' } },
  ])('is refused with $name', async ({ body, refusal }) => {
    await fixture.expectRefused(() => fixture.ask('patch', { body }), { status: 400, ...refusal })
  })

  test('is refused as a form', async () => {
    const headers = [credential, 'content-type: application/x-www-form-urlencoded']

    await fixture.expectRefused(() => fixture.ask('patch', { headers, body: 'ttl=60' }), {
      status: 415,
      code: 'unsupported_media_type',
      param: 'content-type',
    })
  })
})

describe('GET /v1/context', () => {
  test.each([
    { query: 'limit=101', param: 'limit' },
    { query: 'after=%00', param: 'after' },
  ])('is refused with $query', async ({ query, param }) => {
    await fixture.expectRefused(async () => reading(await call(`${fixture.stack.url}/v1/context?${query}`)), {
      status: 400,
      code: 'invalid_page',
      param,
    })
  })
})
