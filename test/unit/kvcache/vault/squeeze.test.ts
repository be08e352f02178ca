import { randomBytes } from 'node:crypto'
import { brotliCompressSync, constants } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { squeeze, unsqueeze } from '../../../../src/kvcache/vault/squeeze.ts'
import { tokensToBytes } from '../../../../src/kvcache/vault/token-bytes.ts'

const withLength = (length: number, content: Uint8Array): Buffer => {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(length)
  return Buffer.concat([head, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })])
}

describe('squeeze', () => {
  test.each([3_000, 100_000])('makes %i token ids at least a quarter smaller', async (count) => {
    const content = tokensToBytes(Uint32Array.from({ length: count }, () => Math.floor(Math.random() * 128_000)))
    const squeezed = await squeeze(content)
    expect(squeezed?.length).toBeLessThan(content.length * 0.75)
    expect(Buffer.compare(content, (await unsqueeze(squeezed ?? content)) ?? Buffer.alloc(0))).toBe(0)
  })

  test.each([
    ['short', Buffer.alloc(1_023)],
    ['random', randomBytes(10_000)],
    ['very long', Buffer.alloc(64 * 1024 * 1024 + 1)],
  ])('leaves content unchanged that is %s', async (_name, content) => {
    expect(await squeeze(content)).toBeUndefined()
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['less than a length', Buffer.alloc(3)],
    ['what is not compressed', Buffer.concat([Buffer.from([0, 8, 0, 0]), Buffer.alloc(100, 7)])],
    ['more than its length says', withLength(2_000, Buffer.alloc(10_000_000))],
    ['less than its length says', withLength(2_000, Buffer.alloc(1_999))],
    ['a length beyond the limit', withLength(0xffffffff, Buffer.alloc(2_000))],
  ])('unsqueeze is undefined for %s', async (_name, squeezed) => {
    expect(await unsqueeze(squeezed)).toBeUndefined()
  })
})
