import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { tokensFromBytes, tokensToBytes } from '../../../src/kvcache/vault/token-bytes.ts'
import type { ContentKey, TokenVault } from '../../../src/kvcache/vault/token-vault.ts'

/** A vault for one test, and two ways into it. */
export interface TokenVaultBed {
  readonly vault: TokenVault
  /** The same vault as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: TokenVault
  /** How many entries the vault keeps. */
  size(): Promise<number>
  /** Waits for more than that much time by the vault's clock. */
  lapse(milliseconds: number): Promise<void>
}

/** A content key, distinguished by its number. */
export const contentKey = (number: number): ContentKey => Buffer.alloc(32, number).toString('base64url') as ContentKey

const minute = 60_000
const key = contentKey(1)
const text = (words: string): Uint8Array => new TextEncoder().encode(words)

/** The contract of TokenVault. `test/fuzz/kvcache/token-vault.test.ts` covers the cipher: other names, other keys, any damage. */
export const describeTokenVault = (adapter: string, make: () => Promise<TokenVaultBed>): void => {
  describe(`a token vault in ${adapter}`, () => {
    let bed: TokenVaultBed
    beforeEach(async () => {
      bed = await make()
    })
    const put = (name: string, content: Uint8Array, ttlMs = minute) =>
      bed.vault.put({ name, contentKey: key, content }, ttlMs)
    const get = async (name: string, withKey = key) => {
      const content = await bed.vault.get(name, withKey)
      return content === undefined ? undefined : Buffer.from(content)
    }

    test.each([
      { name: 'nothing', content: new Uint8Array() },
      { name: 'one byte', content: Uint8Array.of(0) },
      { name: 'a long text', content: text('what a session begins with '.repeat(10_000)) },
      { name: 'bytes that cannot be compressed', content: randomBytes(5_000) },
      { name: 'part of a larger array', content: new Uint8Array(text('..a part..').buffer, 2, 6) },
    ])('get returns $name unchanged', async ({ content }) => {
      await put('a', content)
      expect(await get('a')).toEqual(Buffer.from(content))
    })

    test('another process reads 100,000 token ids', async () => {
      const tokens = Uint32Array.from({ length: 100_000 }, (_none, index) => (index * 7919) % 128_000)
      await put('a', tokensToBytes(tokens))
      expect(tokensFromBytes((await bed.elsewhere.get('a', key)) ?? Uint8Array.of(0))).toEqual(tokens)
    })

    test('an entry is read only by its name and key', async () => {
      await put('a', text('first'))
      await put('b', text('second'))
      expect(await get('a', contentKey(2))).toBeUndefined()
      expect(await get('c')).toBeUndefined()
      expect([await get('a'), await get('b')]).toEqual([Buffer.from('first'), Buffer.from('second')])
    })

    test.each([
      { name: 'short', odd: 'c2hvcnQ' },
      { name: 'empty', odd: '' },
      { name: 'long', odd: randomBytes(33).toString('base64url') },
    ])('a $name key neither reads nor writes', async ({ odd }) => {
      const oddKey = odd as ContentKey
      await put('a', text('secret'))
      expect(await get('a', oddKey)).toBeUndefined()
      const sealing = bed.vault.put({ name: 'b', contentKey: oddKey, content: text('secret') }, minute)
      await expect(sealing).rejects.toThrow('A content key is not 32 bytes long')
      expect(await bed.size()).toBe(1)
    })

    test('put replaces an entry with its key and its time', async () => {
      await put('a', text('first'), 50)
      await bed.vault.put({ name: 'a', contentKey: contentKey(2), content: text('second') }, minute)
      await bed.lapse(50)
      expect(await get('a')).toBeUndefined()
      expect(await get('a', contentKey(2))).toEqual(Buffer.from('second'))
    })

    test.each([50, 0, 0.3, -5])('an entry of %d ms is gone after its time, and another stays', async (ttlMs) => {
      await put('a', text('soon gone'), ttlMs)
      await put('b', text('stays'))
      await bed.lapse(Math.max(ttlMs, 1))
      expect(await get('a')).toBeUndefined()
      expect(await get('b')).toEqual(Buffer.from('stays'))
      expect(await bed.size()).toBe(1)
    })

    test('delete removes the named entries, known or not', async () => {
      for (const name of ['a', 'b', 'c']) await put(name, text(name))
      await bed.elsewhere.delete(['a', 'unknown', 'c'])
      await bed.vault.delete(['a'])
      await bed.vault.delete([])
      expect(await get('a')).toBeUndefined()
      expect(await get('b')).toEqual(Buffer.from('b'))
      expect(await bed.size()).toBe(1)
    })
  })
}
