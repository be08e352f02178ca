import { describe, expect, test } from '@jest/globals'
import { unknownId } from '../support/sessions.ts'
import { allRoutes, bounds, type RouteName } from './fixture.ts'
import { fixture } from './shared-fixture.ts'
import { asJson, askRaw, credential, type Refusal, someJson, wellFramed } from './support.ts'

// What is refused, and for which values, the tests of src/context say. Here: that Envoy brings every part of a request
// to the gateway, and the refusal back.
const headerRows: readonly {
  readonly name: string
  readonly headers: readonly string[]
  readonly routes: readonly RouteName[]
  readonly refusal: Refusal
}[] = [
  {
    name: 'no credential',
    headers: [asJson],
    routes: allRoutes,
    refusal: { status: 401, code: 'invalid_api_key', type: 'authentication_error' },
  },
  {
    name: 'two credentials',
    headers: [asJson, credential, 'authorization: Bearer other'],
    routes: ['use'],
    refusal: { status: 401, code: 'invalid_api_key', type: 'authentication_error' },
  },
  {
    name: 'an x-session-ttl that was sent twice',
    headers: [asJson, credential, 'x-session-ttl: 60', 'x-session-ttl: 60'],
    routes: ['create by POST /v1/context', 'use'],
    refusal: { status: 400, code: 'invalid_ttl', param: 'x-session-ttl' },
  },
  {
    name: 'an x-session-ttl of bytes beyond ASCII',
    headers: [asJson, credential, 'x-session-ttl: \xb2'],
    routes: ['create by POST /v1/context', 'use'],
    refusal: { status: 400, code: 'invalid_ttl', param: 'x-session-ttl' },
  },
  {
    name: 'an x-session-ttl out of bounds',
    headers: [asJson, credential, `x-session-ttl: ${bounds.max + 1}`],
    routes: ['create by POST /v1/context', 'use'],
    refusal: { status: 400, code: 'ttl_out_of_range', param: 'x-session-ttl' },
  },
  {
    name: 'an unknown policy',
    headers: [asJson, credential, 'routing-strategy: the-best'],
    routes: ['create by x-session-ttl', 'use'],
    refusal: { status: 400, code: 'invalid_routing_strategy', param: 'routing-strategy' },
  },
  {
    name: 'a form as content-type',
    headers: [credential, 'content-type: application/x-www-form-urlencoded'],
    routes: ['create by POST /v1/context', 'create by x-session-ttl', 'patch'],
    refusal: { status: 415, code: 'unsupported_media_type', param: 'content-type' },
  },
  {
    name: 'two encodings',
    headers: [credential, asJson, 'content-encoding: identity, br'],
    routes: ['create by POST /v1/context', 'create by x-session-ttl', 'use'],
    refusal: { status: 415, code: 'unsupported_media_type', param: 'content-encoding' },
  },
]

test.each(headerRows.flatMap(({ routes, ...row }) => routes.map((route) => ({ ...row, route }))))(
  'a request to $route is refused with $name',
  async ({ route, headers, refusal }) => {
    await fixture.expectRefused(() => fixture.ask(route, { headers }), refusal)
  },
)

test('a method that a path does not have is refused with those that it has', async () => {
  const request = wellFramed('PUT /v1/context', { headers: [credential, asJson], body: someJson })

  const response = await fixture.expectRefused(() => askRaw(fixture.stack, request), {
    status: 405,
    code: 'method_not_allowed',
  })

  expect(response.header('allow')).toBe('GET, POST')
})

test('the query of a list reaches the gateway', async () => {
  const request = wellFramed('GET /v1/context?limit=101', { headers: [credential] })

  const refusal = { status: 400, code: 'invalid_page', param: 'limit' }
  await fixture.expectRefused(() => askRaw(fixture.stack, request), refusal)
})

test('a PATCH without a body is refused', async () => {
  await fixture.expectRefused(() => fixture.ask('patch', { body: '' }), { status: 400, code: 'invalid_json' })
})

describe('an id in the path that is none', () => {
  const remove = (path: string) => askRaw(fixture.stack, wellFramed(`DELETE ${path}`, { headers: [credential] }))

  test.each([
    { name: 'encoded slashes', id: '..%2f..' },
    { name: 'encoded dots', id: '%2e%2e%2f' },
    { name: 'a percent sign', id: '%' },
    { name: 'a broken escape', id: '%zz' },
    { name: 'a parameter', id: ';x' },
    { name: 'a quote', id: "'" },
    { name: 'another case', id: `CTX_${'a'.repeat(32)}` },
    { name: 'an encoded blank at the end', id: `${unknownId}%20` },
    { name: 'an encoded dot at the end', id: `${unknownId}%2e` },
    { name: 'a query', id: `${unknownId}?x=1` },
    { name: 'an empty query', id: `${unknownId}?` },
    { name: '8 KB', id: 'x'.repeat(8000) },
  ])('is not found: $name', async ({ id }) => {
    await fixture.expectRefused(() => remove(`/v1/context/${id}`), { status: 404, code: 'session_not_found' })
  })

  test.each(['/', '/a/b', `/${unknownId}/`, '/.', '/%2e'])('leads nowhere: %s', async (path) => {
    await fixture.expectRefused(() => remove(`/v1/context${path}`), { status: 404, code: 'unknown_path' })
  })

  test.each(['%00', `${unknownId}%00`, `${unknownId}#x`])('is no path: %s', async (id) => {
    await fixture.expectRefused(() => remove(`/v1/context/${id}`), { status: 400, code: 'bad_request' })
  })
})
