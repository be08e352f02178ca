import { describe, expect, test } from '@jest/globals'
import { createCacheSalts, type SaltScope } from '../../../src/kvcache/cache-salts.ts'
import type { SessionKey, TenantKey } from '../../../src/sessions/session-record.ts'

const [tenant, other] = ['tenant', 'other'] as unknown as readonly [TenantKey, TenantKey]
const key = 'session' as SessionKey
const salts = createCacheSalts('secret')
const scope: SaltScope = { tenant, session: { key, life: '' }, model: 'model', fingerprint: 'engine' }

describe('cache salts', () => {
  test('are 32 hexadecimal digits, the same for the same scope', () => {
    expect(salts.of(scope)).toMatch(/^[0-9a-f]{32}$/)
    expect(createCacheSalts('secret').of({ ...scope })).toBe(salts.of(scope))
  })

  test.each<{ readonly name: string; readonly change: Partial<SaltScope> }>([
    { name: 'tenant', change: { tenant: other } },
    { name: 'session', change: { session: { key: 'another' as SessionKey, life: '' } } },
    { name: 'life of the session', change: { session: { key, life: 'second' } } },
    { name: 'sharing', change: { session: undefined } },
    { name: 'model', change: { model: 'another' } },
    { name: 'engine', change: { fingerprint: 'another' } },
    { name: 'border between two names', change: { model: 'mode', fingerprint: 'lengine' } },
  ])('differ by $name', ({ change }) => {
    expect(salts.of({ ...scope, ...change })).not.toBe(salts.of(scope))
  })

  test('differ by secret', () => {
    expect(createCacheSalts('another secret').of(scope)).not.toBe(salts.of(scope))
  })

  test('of turns without a session are shared by a tenant', () => {
    expect(salts.withoutSession(tenant, 'tenant')).toBe(salts.withoutSession(tenant, 'tenant'))
    expect(salts.withoutSession(tenant, 'tenant')).not.toBe(salts.withoutSession(other, 'tenant'))
    expect(salts.withoutSession(tenant, 'tenant')).not.toBe(salts.of({ ...scope, session: undefined }))
  })

  test('of turns without a session are random with isolation by session', () => {
    const many = Array.from({ length: 50 }, () => salts.withoutSession(tenant, 'session'))
    expect(new Set(many).size).toBe(50)
  })
})
