import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { countToLeaveOut } from '../../../src/responses/truncate-history.ts'
import { allSlices } from '../../support/all-slices.ts'

const anyItem = fc
  .record({ role: fc.constantFrom('user', 'assistant', 'system', undefined), content: fc.string() })
  .map((item) => ({ id: 'item', json: JSON.stringify(item) }))
const anyCase = fc.record({
  items: fc.array(anyItem, { maxLength: 20 }),
  contextTokens: fc.nat(400),
  usedTokens: fc.nat(400),
  newBytes: fc.nat(100),
  answerTokens: fc.nat(50),
})

const beginsTurn = (json: string): boolean => /"role":"(?:user|system)"/.test(json)

test('what fits stays whole, and what is left begins with a turn', () => {
  fc.assert(
    fc.property(anyCase, ({ items, ...tokens }) => {
      const count = allSlices(countToLeaveOut(items, { ...tokens, leftOut: 0 }))
      const next = items[count]
      expect(count).toBeLessThanOrEqual(items.length)
      if (count > 0 && next !== undefined) expect(beginsTurn(next.json)).toBe(true)
      const { contextTokens, usedTokens, answerTokens, newBytes } = tokens
      if (newBytes === 0 && usedTokens + answerTokens <= contextTokens) expect(count).toBe(0)
      if (items.length > 0 && usedTokens > contextTokens) expect(count).toBeGreaterThan(0)
    }),
  )
})

test('a longer context leaves no more out, and what was left out stays out', () => {
  fc.assert(
    fc.property(anyCase, fc.nat(200), ({ items, ...tokens }, more) => {
      const count = allSlices(countToLeaveOut(items, { ...tokens, leftOut: 0 }))
      const longer = { ...tokens, contextTokens: tokens.contextTokens + more }
      expect(allSlices(countToLeaveOut(items, { ...longer, leftOut: 0 }))).toBeLessThanOrEqual(count)
      expect(allSlices(countToLeaveOut(items, { ...tokens, leftOut: count }))).toBeGreaterThanOrEqual(count)
    }),
  )
})
