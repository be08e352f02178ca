import { describe, expect, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { allRoutes, bounds } from './fixture.ts'
import { fixture } from './shared-fixture.ts'
import { asJson, askRaw, credential, reading, someBody, someJson, wellFramed } from './support.ts'

describe('x-session-ttl', () => {
  const malformed = [
    { name: 'a word', values: ['abc'] },
    { name: '2^63', values: ['9223372036854775808'] },
    { name: 'two in one', values: ['60,60'] },
    { name: 'other digits', values: ['\xb2'] },
    { name: 'nothing', values: [''] },
    { name: 'sent twice', values: ['60', '60'] },
  ]
  const paths = [
    { route: 'POST /v1/context', start: 'POST /v1/context', own: () => [] },
    { route: 'an inference path', start: 'POST /v1/responses', own: () => [] },
    { route: 'a turn', start: 'POST /v1/completions', own: () => [`x-session-id: ${fixture.sessionId}`] },
  ]

  test.each(paths.flatMap((path) => malformed.map((value) => ({ ...path, ...value }))))(
    'is refused on $route: $name',
    async ({ start, own, values }) => {
      const headers = [credential, asJson, ...own(), ...values.map((value) => `x-session-ttl: ${value}`)]

      await fixture.expectRefused(() => askRaw(fixture.stack, wellFramed(start, { headers, body: someJson })), {
        status: 400,
        code: 'invalid_ttl',
        param: 'x-session-ttl',
      })
    },
  )

  test.each(
    paths.flatMap((path) =>
      [bounds.min - 1, bounds.max + 1, 999_999_999].map((value) => ({ ...path, value: String(value) })),
    ),
  )('out of bounds is refused on $route, and the bounds are named: $value', async ({ start, own, value }) => {
    const headers = [credential, asJson, ...own(), `x-session-ttl: ${value}`]

    const response = await fixture.expectRefused(
      () => askRaw(fixture.stack, wellFramed(start, { headers, body: someJson })),
      {
        status: 400,
        code: 'ttl_out_of_range',
        param: 'x-session-ttl',
      },
    )

    expect(response.text).toContain(`from ${bounds.min} to ${bounds.max} seconds`)
  })

  test.each([
    { name: 'missing', headers: [], expected: '3600' },
    { name: 'the shortest', headers: [`x-session-ttl: ${bounds.min}`], expected: String(bounds.min) },
    { name: 'the longest', headers: [`x-session-ttl: ${bounds.max}`], expected: String(bounds.max) },
    { name: 'with the blanks that HTTP strips', headers: ['x-session-ttl:   60  '], expected: '60' },
  ])('is returned in the response: $name', async ({ headers, expected }) => {
    const response = await fixture.ask('create by POST /v1/context', { headers: [credential, asJson, ...headers] })

    expect([response.status, response.header('x-session-ttl')]).toEqual([200, expected])
  })
})

describe('Authorization', () => {
  const credentials = [
    { name: 'missing', headers: [] },
    { name: 'empty', headers: ['authorization:'] },
    { name: 'a scheme alone', headers: ['authorization: Bearer'] },
    { name: 'sent twice', headers: [credential, credential] },
    { name: 'two different', headers: [credential, 'authorization: Bearer other'] },
    { name: 'two in one header', headers: ['authorization: Bearer a, Bearer b'] },
  ]

  test.each(allRoutes.flatMap((route) => credentials.map((value) => ({ route, ...value }))))(
    'is needed once to $route: $name',
    async ({ route, headers }) => {
      await fixture.expectRefused(() => fixture.ask(route, { headers: [asJson, ...headers] }), {
        status: 401,
        code: 'invalid_api_key',
        type: 'authentication_error',
      })
    },
  )
})

describe('a method that a path does not have', () => {
  test.each([
    { method: 'PUT', path: () => '/v1/context', allow: 'GET, POST' },
    { method: 'PATCH', path: () => '/v1/context', allow: 'GET, POST' },
    { method: 'DELETE', path: () => '/v1/context', allow: 'GET, POST' },
    { method: 'OPTIONS', path: () => '/v1/context', allow: 'GET, POST' },
    { method: 'POST', path: () => `/v1/context/${fixture.sessionId}`, allow: 'GET, PATCH, DELETE' },
    { method: 'PUT', path: () => `/v1/context/${fixture.sessionId}`, allow: 'GET, PATCH, DELETE' },
  ])('is refused: $method, allowed are $allow', async ({ method, path, allow }) => {
    const request = wellFramed(`${method} ${path()}`, { headers: [credential, asJson], body: someJson })

    const response = await fixture.expectRefused(() => askRaw(fixture.stack, request), {
      status: 405,
      code: 'method_not_allowed',
    })

    expect(response.header('allow')).toBe(allow)
  })
})

describe('routing-strategy', () => {
  test.each([
    { name: 'create', path: '/v1/context', headers: () => ({}) },
    { name: 'use', path: '/v1/completions', headers: () => ({ 'x-session-id': fixture.sessionId }) },
  ])('is refused when it names no policy ($name)', async ({ path, headers }) => {
    const all = { ...headers(), 'routing-strategy': 'the-best' }

    const response = await fixture.expectRefused(
      async () => reading(await call(`${fixture.stack.url}${path}`, { headers: all, body: someBody })),
      { status: 400, code: 'invalid_routing_strategy', param: 'routing-strategy' },
    )

    expect(response.text).toContain('round-robin')
  })
})
