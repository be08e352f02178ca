import { describe, expect, test } from '@jest/globals'
import { createSessionIdCipher, isSessionId, newSessionId, sessionKeyOf } from '../../../src/context/session-id.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'

const id = `ctx_${'aZ0_-'.repeat(7).slice(0, 32)}`

describe('newSessionId', () => {
  test('creates ids that isSessionId recognises', () => {
    const ids = Array.from({ length: 1000 }, newSessionId)

    expect(ids.filter((made) => !isSessionId(made))).toEqual([])
  })

  test('creates different ids, with different characters at every position', () => {
    const ids = Array.from({ length: 1000 }, newSessionId)
    const fixedPlaces = Array.from({ length: 32 }, (_, at) => new Set(ids.map((made) => made[4 + at])).size).filter(
      (characters) => characters < 48,
    )

    expect(new Set(ids).size).toBe(1000)
    expect(fixedPlaces).toEqual([])
  })
})

describe('isSessionId', () => {
  test('is true for an id of this gateway', () => {
    expect(isSessionId(id)).toBe(true)
  })

  test.each([
    { name: 'empty', value: '' },
    { name: 'the prefix alone', value: 'ctx_' },
    { name: 'a character short', value: id.slice(0, -1) },
    { name: 'a character long', value: `${id}a` },
    { name: 'another prefix', value: id.replace('ctx_', 'CTX_') },
    { name: 'no prefix', value: id.slice(4) },
    { name: 'a UUID', value: '6e53914f-3a2d-4ab9-9a43-5fbb04bd1a1c' },
    { name: "the proposal's example", value: 'session-01' },
    { name: 'a dot', value: id.replace('a', '.') },
    { name: 'a slash', value: id.replace('a', '/') },
    { name: 'an escaped slash', value: `ctx_%2f${'a'.repeat(29)}` },
    { name: 'a space in front', value: ` ${id}` },
    { name: 'a line break behind', value: `${id}\n` },
    { name: 'two ids in one value', value: `${id}, ${id}` },
    { name: 'bytes beyond ASCII', value: `ctx_${'\xe9'.repeat(32)}` },
    { name: '50 KB', value: `ctx_${'a'.repeat(50_000)}` },
  ])('is false for an id of another system: $name', ({ value }) => {
    expect(isSessionId(value)).toBe(false)
  })
})

describe('sessionKeyOf', () => {
  test('is the SHA-256 of the id, base64url', () => {
    // printf %s ctx_00000000000000000000000000000000 | openssl dgst -sha256 -binary | basenc --base64url
    expect(sessionKeyOf(`ctx_${'0'.repeat(32)}`)).toBe('OQf85YGnbM0NwIW_Xk-kjb_YnzBvl00JWkGrvh4B3vE')
  })

  test('contains no part of the id', () => {
    expect(sessionKeyOf(id)).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(sessionKeyOf(id)).not.toContain(id.slice(4, 12))
  })
})

const tenant = 'tenant-a' as TenantKey
const cipher = createSessionIdCipher('a secret of the gateway')

describe('session id cipher', () => {
  test('decrypts what it encrypted', () => {
    expect(cipher.decrypt(cipher.encrypt(id, tenant), tenant)).toEqual({ id, namedBy: undefined })
    expect(cipher.decrypt(cipher.encrypt(id, tenant, 'thread-id'), tenant)).toEqual({ id, namedBy: 'thread-id' })
  })

  test('decrypts nothing for another tenant', () => {
    expect(cipher.decrypt(cipher.encrypt(id, tenant), 'tenant-b' as TenantKey)).toBeUndefined()
  })

  test('decrypts nothing with another secret', () => {
    expect(createSessionIdCipher('another secret').decrypt(cipher.encrypt(id, tenant), tenant)).toBeUndefined()
  })

  test('encrypts to text without any part of the id', () => {
    const encrypted = cipher.encrypt(id, tenant)
    const bytes = Buffer.from(encrypted, 'base64url')

    expect(encrypted).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(encrypted).not.toContain('ctx_')
    expect(bytes.toString('latin1')).not.toContain(id.slice(4, 8))
    expect(encrypted).not.toContain(Buffer.from(id).toString('base64url').slice(0, 8))
  })

  test('decrypts to undefined when any single bit is flipped', () => {
    const bytes = Buffer.from(cipher.encrypt(id, tenant), 'base64url')
    const opened = Array.from({ length: bytes.length * 8 }, (_, bit) => {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      return cipher.decrypt(flipped.toString('base64url'), tenant)
    }).filter((text) => text !== undefined)

    expect(opened).toEqual([])
  })
})
