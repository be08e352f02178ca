import { describe, expect, test } from '@jest/globals'
import { idempotencyKeyOf } from '../../../src/context/idempotency.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'
import { allSlices } from '../../support/all-slices.ts'
import { createContextGateway, promptBody, type SentRequest } from '../../support/context-gateway.ts'
import { cacheStatusOf, forwarded, rejection, sessionIdOf } from '../../support/decisions.ts'
import { errorOf } from '../../support/error-of.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const create = { tenant: 'tenant-a' as TenantKey, form: 'chat', body: Buffer.from('body-1'), secret: 'a secret' }

const keyOf = (headers: Readonly<Record<string, string | readonly string[]>>, change: Partial<typeof create> = {}) =>
  allSlices(idempotencyKeyOf(gatewayRequest({ path: '/v1/context', headers }), { ...create, ...change }))

describe('idempotencyKeyOf', () => {
  test.each([
    { name: 'no header', headers: {} },
    { name: 'a retry count that is no number', headers: { 'x-stainless-retry-count': 'one' } },
    { name: 'an empty retry count', headers: { 'x-stainless-retry-count': '' } },
    { name: 'a retry count beyond reason', headers: { 'x-stainless-retry-count': '1000' } },
  ])('is undefined with $name', ({ headers }) => {
    expect(keyOf(headers)).toBeUndefined()
  })

  test.each(['idempotency-key', 'x-stainless-retry-count'])('%s: the body digest depends on form and body', (name) => {
    const digests = [{}, { form: 'completions' }, { body: Buffer.from('body-2') }].map(
      (change) => keyOf({ [name]: '1' }, change)?.bodyDigest,
    )

    expect(new Set(digests).size).toBe(3)
  })

  test('hashes no body without a key', () => {
    const body = new Proxy(Buffer.from('body'), {
      get: () => {
        throw new Error('the body was read')
      },
    })

    expect(keyOf({}, { body })).toBeUndefined()
    expect(() => keyOf({ 'idempotency-key': 'k' }, { body })).toThrow('the body was read')
  })

  test('an Idempotency-Key finds the first create for a day', () => {
    expect(keyOf({ 'idempotency-key': 'k' })).toMatchObject({ use: 'find-or-record', rememberMs: 24 * 3600 * 1000 })
  })

  test('an Idempotency-Key takes precedence over the retry count', () => {
    expect(keyOf({ 'idempotency-key': 'k', 'x-stainless-retry-count': '0' })).toEqual(keyOf({ 'idempotency-key': 'k' }))
  })

  test('the digest of an Idempotency-Key depends on the tenant and not on the body', () => {
    const { digest } = keyOf({ 'idempotency-key': 'k' }) ?? {}

    expect(keyOf({ 'idempotency-key': 'k' }, { body: Buffer.from('body-2') })?.digest).toBe(digest)
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

  test('a first try of an SDK is only recorded', () => {
    expect(keyOf({ 'x-stainless-retry-count': '0' })).toMatchObject({ use: 'record-only', rememberMs: 600_000 })
  })

  test.each(['1', '2', '15'])('try %s of an SDK finds the first one by tenant and body', (count) => {
    const first = keyOf({ 'x-stainless-retry-count': '0' })

    expect(keyOf({ 'x-stainless-retry-count': count })).toEqual({ ...first, use: 'find-young-or-record' })
    for (const change of [{ body: Buffer.from('body-2') }, { tenant: 'tenant-b' as TenantKey }])
      expect(keyOf({ 'x-stainless-retry-count': count }, change)?.digest).not.toBe(first?.digest)
  })

  test('a key that equals a body digest names another create', () => {
    const { bodyDigest = '' } = keyOf({ 'x-stainless-retry-count': '1' }) ?? {}

    expect(keyOf({ 'idempotency-key': bodyDigest })?.digest).not.toBe(keyOf({ 'x-stainless-retry-count': '1' })?.digest)
  })
})

describe('a create with an Idempotency-Key', () => {
  /** A gateway, and creates that it gets with one key. */
  const open = () => {
    const gateway = createContextGateway()
    const headers = { 'idempotency-key': 'k', 'x-session-ttl': '60' }
    const send = (change: Partial<SentRequest> = {}) =>
      gateway.send({ path: '/v1/context', body: promptBody, headers, ...change })
    return { gateway, send }
  }

  test('continues the session of the first create when repeated, in the pod that served it last', async () => {
    const { gateway, send } = open()
    const first = forwarded(await send())
    const [chosen, other = ''] = first.destinations
    await gateway.serve(first, { servedBy: other, promptTokens: 3000 })
    gateway.pods.setReady(chosen, true)

    const second = forwarded(await send())

    expect(sessionIdOf(second)).toBe(sessionIdOf(first))
    expect(second.destinations[0]).toBe(other)
    expect(cacheStatusOf(second)).toMatch(/^hit; tier=gpu/)
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })

  test('is refused for another body', async () => {
    const { gateway, send } = open()
    await send()

    expect(rejection(await send({ body: { model: 'm', prompt: 'another' } }))).toMatchObject({
      code: 'idempotency_key_reused',
      status: 400,
      param: 'Idempotency-Key',
    })
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })

  test('is refused for the same body sent to another API', async () => {
    const { send } = open()
    const body = { ...promptBody, messages: [{ role: 'user', content: 'hi' }] }
    await send({ path: '/v1/completions', body })

    expect(rejection(await send({ path: '/v1/chat/completions', body })).code).toBe('idempotency_key_reused')
  })
})
