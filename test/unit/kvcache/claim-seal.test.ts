import { describe, expect, test } from '@jest/globals'
import { createClaimSeal } from '../../../src/kvcache/claim-seal.ts'

const seal = createClaimSeal('a secret of the deployment')
const claim = { salt: 'f00d', slot: 3 }

describe('a claim', () => {
  test('is not readable, and differs each time', () => {
    const [first, second] = [seal.seal('turn-1', claim), seal.seal('turn-1', claim)]
    expect(first).not.toBe(second)
    expect(Buffer.from(first, 'base64url').toString('latin1')).not.toContain('f00d')
  })

  test.each([
    { name: 'of another turn', open: () => seal.open('turn-2', seal.seal('turn-1', claim)) },
    { name: 'cut short', open: () => seal.open('turn-1', seal.seal('turn-1', claim).slice(0, -4)) },
    { name: 'that is empty', open: () => seal.open('turn-1', '') },
    { name: 'that was never sealed', open: () => seal.open('turn-1', JSON.stringify(claim)) },
  ])('$name does not open', ({ open }) => {
    expect(open()).toBeUndefined()
  })
})
