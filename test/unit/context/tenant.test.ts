import { describe, expect, test } from '@jest/globals'
import { createTenants } from '../../../src/context/tenant.ts'
import { errorOf } from '../../support/error-of.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const secret = 'a secret of the gateway'
const tenants = createTenants({ secret, principalHeader: undefined })
const behindAuth = createTenants({ secret, principalHeader: 'x-principal' })

const withHeaders = (headers: Readonly<Record<string, string | readonly string[]>>) =>
  gatewayRequest({ path: '/v1/context', headers })

const bearer = (key: string) => withHeaders({ authorization: `Bearer ${key}` })

describe('tenant by credential', () => {
  test('is the same for the same credential, whatever the request', () => {
    const other = gatewayRequest({
      method: 'DELETE',
      path: '/v1/context/x',
      headers: { authorization: 'Bearer key-a' },
    })

    expect(tenants.tenantOf(other)).toBe(tenants.tenantOf(bearer('key-a')))
  })

  test('differs by credential and by secret', () => {
    const elsewhere = createTenants({ secret: 'another', principalHeader: undefined })

    expect(tenants.tenantOf(bearer('key-b'))).not.toBe(tenants.tenantOf(bearer('key-a')))
    expect(elsewhere.tenantOf(bearer('key-a'))).not.toBe(tenants.tenantOf(bearer('key-a')))
  })

  test.each([
    { name: 'x-api-key', headers: { 'x-api-key': 'key-a' } },
    { name: 'api-key', headers: { 'api-key': 'key-a' } },
    { name: 'x-api-key beside another api-key', headers: { 'x-api-key': 'key-a', 'api-key': 'key-b' } },
    {
      name: 'Authorization beside another x-api-key',
      headers: { authorization: 'Bearer key-a', 'x-api-key': 'key-b' },
    },
  ])('is that of the bearer token: $name', ({ headers }) => {
    expect(tenants.tenantOf(withHeaders(headers))).toBe(tenants.tenantOf(bearer('key-a')))
  })

  test('contains no part of the credential', () => {
    expect(tenants.tenantOf(bearer('key-a'))).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test.each([
    { name: 'none', headers: {} },
    { name: 'empty', headers: { authorization: '' } },
    { name: 'a scheme alone', headers: { authorization: 'Bearer' } },
    { name: 'a scheme and a space', headers: { authorization: 'Bearer ' } },
    { name: 'two', headers: { authorization: ['Bearer key-a', 'Bearer key-b'] } },
    { name: 'the same twice', headers: { authorization: ['Bearer key-a', 'Bearer key-a'] } },
    { name: 'an empty x-api-key', headers: { 'x-api-key': '' } },
    { name: 'two in x-api-key', headers: { 'x-api-key': 'key-a,key-b' } },
    { name: 'two x-api-key', headers: { 'x-api-key': ['key-a', 'key-a'] } },
    { name: 'an empty one beside x-api-key', headers: { authorization: '', 'x-api-key': 'key-a' } },
    { name: 'a header that is not asked for', headers: { 'x-principal': 'alice' } },
    { name: 'two that were joined', headers: { authorization: 'Bearer key-a,Bearer key-b' } },
    { name: 'two that were joined with a space', headers: { authorization: 'Bearer key-a, Bearer key-b' } },
    { name: 'two of base64', headers: { authorization: 'Basic YTpiYw==,Basic YTpiYw==' } },
    { name: 'one and an empty one', headers: { authorization: 'Bearer key-a,' } },
    { name: 'parameters of a request signature', headers: { authorization: 'Digest username="a", nonce=1' } },
    { name: 'a comma in the scheme', headers: { authorization: 'Bearer,Bearer key-a' } },
  ])('is refused without exactly one credential: $name', ({ headers }) => {
    expect(errorOf(() => tenants.tenantOf(withHeaders(headers)))).toMatchObject({
      code: 'invalid_api_key',
      status: 401,
    })
  })
})

describe('one credential', () => {
  test.each([
    { name: 'a key', authorization: 'Bearer sk-proj-aZ0_-.~+/==' },
    { name: 'a user and password', authorization: 'Basic YTpiYw==' },
  ])('may be $name', ({ authorization }) => {
    expect(tenants.tenantOf(withHeaders({ authorization }))).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test('of half a megabyte with commas is refused in one pass', () => {
    for (const value of [','.repeat(500_000), `a,${' '.repeat(500_000)}`, `${' '.repeat(500_000)},`])
      expect(errorOf(() => tenants.tenantOf(bearer(value))).code).toBe('invalid_api_key')
  })
})

describe('tenant by principal', () => {
  test('stays the same when the credential changes', () => {
    const before = withHeaders({ 'x-principal': 'alice', authorization: 'Bearer old' })
    const after = withHeaders({ 'x-principal': 'alice', authorization: 'Bearer new' })

    expect(behindAuth.tenantOf(after)).toBe(behindAuth.tenantOf(before))
  })

  test('needs no credential', () => {
    expect(behindAuth.tenantOf(withHeaders({ 'x-principal': 'alice' }))).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test.each([
    { name: 'missing', headers: { authorization: 'Bearer key-a' } },
    { name: 'empty', headers: { 'x-principal': '', authorization: 'Bearer key-a' } },
    { name: 'ambiguous', headers: { 'x-principal': ['alice', 'bob'], authorization: 'Bearer key-a' } },
  ])('falls back to the credential when the principal is $name', ({ headers }) => {
    expect(behindAuth.tenantOf(withHeaders(headers))).toBe(tenants.tenantOf(bearer('key-a')))
  })

  test('differs from the tenant of a credential with the same text', () => {
    expect(behindAuth.tenantOf(withHeaders({ 'x-principal': 'Bearer key-a' }))).not.toBe(
      tenants.tenantOf(bearer('key-a')),
    )
  })

  test('is refused without principal and credential', () => {
    expect(errorOf(() => behindAuth.tenantOf(withHeaders({ 'x-principal': ['alice', 'bob'] })))).toMatchObject({
      code: 'invalid_api_key',
    })
  })
})
