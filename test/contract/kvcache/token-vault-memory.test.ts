import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createMemoryTokenVault } from '../../../src/kvcache/vault/memory-token-vault.ts'
import { contentKey, memoryVaultBed } from './token-vault-bed.ts'
import { describeTokenVault } from './token-vault-suite.ts'

describeTokenVault('memory', memoryVaultBed)

describe('the limit of a token vault in memory', () => {
  const key = contentKey(1)
  const newVault = () => {
    const clock = { nowMs: 0 }
    const vault = createMemoryTokenVault({ maxBytes: 1_000, now: () => clock.nowMs })
    const put = (name: string, bytes: number, ttlMs = 60_000) =>
      vault.put({ name, contentKey: key, content: randomBytes(bytes) }, ttlMs)
    const kept = async (...names: readonly string[]) => {
      const found = await Promise.all(names.map((name) => vault.get(name, key)))
      return names.filter((_name, index) => found[index] !== undefined)
    }
    return { clock, vault, put, kept }
  }

  test('takes what was used least recently', async () => {
    const { put, kept, vault } = newVault()
    for (const name of ['a', 'b', 'c']) await put(name, 270)
    await vault.get('a', key)
    await put('d', 270)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('takes what has expired first', async () => {
    const { clock, put, kept } = newVault()
    await put('a', 270)
    await put('b', 270, 100)
    await put('c', 270)
    clock.nowMs = 200
    await put('d', 270)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('does not take an entry that exceeds it, nor anything for its sake', async () => {
    const { put, kept, vault } = newVault()
    await put('a', 270)
    await put('b', 1_001)
    expect(await kept('a', 'b')).toEqual(['a'])
    await put('a', 1_001)
    expect(vault.size).toBe(0)
  })

  test('counts names, nonces and tags', async () => {
    const { put, vault } = newVault()
    for (const name of ['a', 'b']) await put(name.repeat(450), 40)
    expect(vault.size).toBe(1)
  })
})
