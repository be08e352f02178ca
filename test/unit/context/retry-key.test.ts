import { describe, expect, test } from '@jest/globals'
import { retryKeyOf } from '../../../src/context/retry-key.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'
import { errorOf } from '../../support/error-of.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const create = { tenant: 'tenant-a' as TenantKey, bodyDigest: 'body-1', secret: 'a secret' }

const keyOf = (headers: Readonly<Record<string, string | readonly string[]>>, change: Partial<typeof create> = {}) =>
  retryKeyOf(gatewayRequest({ path: '/v1/context', headers }), { ...create, ...change })

describe('retryKeyOf', () => {
  test.each([
    { name: 'no header', headers: {} },
    { name: 'a retry count that is no number', headers: { 'x-stainless-retry-count': 'one' } },
    { name: 'an empty retry count', headers: { 'x-stainless-retry-count': '' } },
    { name: 'a retry count beyond reason', headers: { 'x-stainless-retry-count': '1000' } },
  ])('is undefined with $name', ({ headers }) => {
    expect(keyOf(headers)).toBeUndefined()
  })

  test('an Idempotency-Key finds the first create for a day', () => {
    expect(keyOf({ 'idempotency-key': 'k' })).toMatchObject({
      use: 'find-or-record',
      rememberMs: 24 * 3600 * 1000,
      bodyDigest: 'body-1',
    })
  })

  test('an Idempotency-Key counts more than the number of the try', () => {
    expect(keyOf({ 'idempotency-key': 'k', 'x-stainless-retry-count': '0' })).toEqual(keyOf({ 'idempotency-key': 'k' }))
  })

  test('an Idempotency-Key is one tenant’s own, and does not depend on the body', () => {
    const { digest } = keyOf({ 'idempotency-key': 'k' }) ?? {}

    expect(keyOf({ 'idempotency-key': 'k' }, { bodyDigest: 'body-2' })).toMatchObject({ digest, bodyDigest: 'body-2' })
    expect(keyOf({ 'idempotency-key': 'k' }, { tenant: 'tenant-b' as TenantKey })?.digest).not.toBe(digest)
    expect(keyOf({ 'idempotency-key': 'K' })?.digest).not.toBe(digest)
    expect(keyOf({ 'idempotency-key': 'k' }, { secret: 'another' })?.digest).not.toBe(digest)
  })

  test.each(['k', 'a b', '~'.repeat(255), '6e53914f-3a2d-4ab9-9a43-5fbb04bd1a1c'])('takes the key "%s"', (key) => {
    expect(keyOf({ 'idempotency-key': key })?.digest).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test.each([
    { name: 'empty', key: '' },
    { name: '256 characters', key: 'k'.repeat(256) },
    { name: 'a control character', key: 'k\t' },
    { name: 'bytes beyond ASCII', key: 'k\xe9' },
    { name: 'two headers', key: ['k', 'l'] },
    { name: 'the same header twice', key: ['k', 'k'] },
  ])('refuses a key that is $name', ({ key }) => {
    expect(errorOf(() => keyOf({ 'idempotency-key': key }))).toMatchObject({
      code: 'invalid_idempotency_key',
      param: 'Idempotency-Key',
      status: 400,
    })
  })

  test('a first try of an SDK is only written down', () => {
    expect(keyOf({ 'x-stainless-retry-count': '0' })).toMatchObject({ use: 'record-only', rememberMs: 600_000 })
  })

  test.each(['1', '2', '15'])('try %s of an SDK finds the first one by the same body', (count) => {
    const first = keyOf({ 'x-stainless-retry-count': '0' })

    expect(keyOf({ 'x-stainless-retry-count': count })).toEqual({ ...first, use: 'find-or-record' })
  })

  test('tries with other bodies or of other tenants are no tries of the same', () => {
    const { digest } = keyOf({ 'x-stainless-retry-count': '1' }) ?? {}

    expect(keyOf({ 'x-stainless-retry-count': '1' }, { bodyDigest: 'body-2' })?.digest).not.toBe(digest)
    expect(keyOf({ 'x-stainless-retry-count': '1' }, { tenant: 'tenant-b' as TenantKey })?.digest).not.toBe(digest)
  })

  test('a key that reads like a body digest names another create', () => {
    expect(keyOf({ 'idempotency-key': 'body-1' })?.digest).not.toBe(keyOf({ 'x-stainless-retry-count': '1' })?.digest)
  })
})
