import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { tokensFromBytes, tokensToBytes } from '../../../src/kvcache/vault/token-bytes.ts'
import { contentKey, type TokenVaultBed } from './token-vault-bed.ts'

const minute = 60_000
const key = contentKey(1)
const text = (words: string): Uint8Array => new TextEncoder().encode(words)

/** What every vault promises. */
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
      ['nothing', new Uint8Array()],
      ['one byte', Uint8Array.of(0)],
      ['a short text', text('what a session begins with')],
      ['a long text', text('what a session begins with '.repeat(10_000))],
      ['bytes that cannot be compressed', randomBytes(5_000)],
      ['part of a larger array', new Uint8Array(text('..a part..').buffer, 2, 6)],
    ])('gives back %s', async (_name, content) => {
      await put('a', content)
      expect(await get('a')).toEqual(Buffer.from(content))
    })

    test('gives back 100,000 token ids, to another process too', async () => {
      const tokens = Uint32Array.from({ length: 100_000 }, (_none, index) => (index * 7919) % 128_000)
      await put('a', tokensToBytes(tokens))
      expect(tokensFromBytes((await bed.elsewhere.get('a', key)) ?? Uint8Array.of(0))).toEqual(tokens)
    })

    test('has nothing under a name that nobody used', async () => {
      expect(await get('a')).toBeUndefined()
    })

    test('opens nothing with another key', async () => {
      await put('a', text('secret'))
      expect(await get('a', contentKey(2))).toBeUndefined()
      expect(await get('a')).toEqual(Buffer.from('secret'))
    })

    test.each([
      ['short', 'c2hvcnQ'],
      ['empty', ''],
      ['long', randomBytes(33).toString('base64url')],
    ])('opens nothing with a %s key, and seals nothing under it', async (_name, odd) => {
      const oddKey = odd as typeof key
      await put('a', text('secret'))
      expect(await get('a', oddKey)).toBeUndefined()
      const sealing = bed.vault.put({ name: 'b', contentKey: oddKey, content: text('secret') }, minute)
      await expect(sealing).rejects.toThrow('A content key is not 32 bytes long')
      expect(await bed.size()).toBe(1)
    })

    test('keeps entries apart by their names', async () => {
      await put('a', text('first'))
      await put('b', text('second'))
      expect(await get('a')).toEqual(Buffer.from('first'))
      expect(await get('b')).toEqual(Buffer.from('second'))
    })

    test('replaces an entry, under another key too, and its time', async () => {
      await put('a', text('first'), 50)
      await bed.vault.put({ name: 'a', contentKey: contentKey(2), content: text('second') }, minute)
      await bed.lapse(50)
      expect(await get('a')).toBeUndefined()
      expect(await get('a', contentKey(2))).toEqual(Buffer.from('second'))
    })

    test('forgets an entry when its time is over', async () => {
      await put('a', text('soon gone'), 50)
      await put('b', text('stays'))
      await bed.lapse(50)
      expect(await get('a')).toBeUndefined()
      expect(await get('b')).toEqual(Buffer.from('stays'))
      expect(await bed.size()).toBe(1)
    })

    test.each([
      ['zero', 0],
      ['less than a millisecond', 0.3],
      ['negative', -5],
    ])('keeps an entry for no more than a moment when its time is %s', async (_name, ttlMs) => {
      await put('a', text('at once'), ttlMs)
      await bed.lapse(1)
      expect(await get('a')).toBeUndefined()
    })

    test('deletes what it is told to, whether it is there or not', async () => {
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
