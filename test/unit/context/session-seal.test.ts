import { describe, expect, test } from '@jest/globals'
import { newSessionId } from '../../../src/context/session-id.ts'
import { createSessionSeal } from '../../../src/context/session-seal.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'

const tenant = 'tenant-a' as TenantKey
const seal = createSessionSeal('a secret of the gateway')
const id = newSessionId()

describe('session seal', () => {
  test('opens what it sealed', () => {
    expect(seal.open(seal.seal(id, tenant), tenant)).toBe(id)
  })

  test('opens what another gateway with the same secret sealed', () => {
    expect(createSessionSeal('a secret of the gateway').open(seal.seal(id, tenant), tenant)).toBe(id)
  })

  test('stays closed to another tenant', () => {
    expect(seal.open(seal.seal(id, tenant), 'tenant-b' as TenantKey)).toBeUndefined()
  })

  test('stays closed to another secret', () => {
    expect(createSessionSeal('another secret').open(seal.seal(id, tenant), tenant)).toBeUndefined()
  })

  test('shows nothing of the id, in no encoding', () => {
    const sealed = seal.seal(id, tenant)
    const bytes = Buffer.from(sealed, 'base64url')

    expect(sealed).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(sealed).not.toContain('ctx_')
    expect(bytes.toString('latin1')).not.toContain(id.slice(4, 8))
    expect(sealed).not.toContain(Buffer.from(id).toString('base64url').slice(0, 8))
  })

  test('seals the same id differently every time', () => {
    expect(new Set(Array.from({ length: 100 }, () => seal.seal(id, tenant))).size).toBe(100)
  })

  test.each([
    { name: 'empty', damage: () => Buffer.alloc(0) },
    { name: 'as long as nonce and tag alone', damage: (bytes: Buffer) => bytes.subarray(0, 28) },
    { name: 'a byte short', damage: (bytes: Buffer) => bytes.subarray(0, -1) },
    { name: 'a byte long', damage: (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(1)]) },
    { name: 'the id in the clear', damage: () => Buffer.from(id) },
  ])('is undefined for what is damaged: $name', ({ damage }) => {
    const bytes = Buffer.from(seal.seal(id, tenant), 'base64url')

    expect(seal.open(damage(bytes).toString('base64url'), tenant)).toBeUndefined()
  })

  test('is undefined when any single bit has flipped', () => {
    const bytes = Buffer.from(seal.seal(id, tenant), 'base64url')
    const opened = Array.from({ length: bytes.length * 8 }, (_, bit) => {
      const flipped = Buffer.from(bytes)
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      return seal.open(flipped.toString('base64url'), tenant)
    }).filter((text) => text !== undefined)

    expect(opened).toEqual([])
  })
})
