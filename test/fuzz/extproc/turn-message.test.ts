import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { pairsOf } from '../../support/header-pairs.ts'

const askOf = (id: number, pairs: Uint8Array): Buffer => {
  const head = Buffer.alloc(6)
  head[0] = 1
  head.writeUInt32LE(id, 1)
  return Buffer.concat([head, pairs])
}

const latin1 = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('latin1'))

test('headers arrive as they were sent', () => {
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), fc.dictionary(latin1, latin1), (id, headers) => {
      const message = decodeTurnMessage(askOf(id, pairsOf(headers)))
      if (message.kind !== 'ask') throw new Error('an ask is expected')
      expect(message.id).toBe(id)
      for (const [name, value] of Object.entries(headers)) expect(message.request.headers(name)).toEqual([value])
    }),
  )
})

test('any bytes are a message or an exception, and headers lie within them', () => {
  const bytes = fc.uint8Array({ maxLength: 60 })
  const small = fc.array(fc.nat(12), { maxLength: 60 }).map((numbers) => Uint8Array.from(numbers))
  fc.assert(
    fc.property(
      fc.oneof(
        bytes,
        small,
        bytes.map((pairs) => askOf(1, pairs)),
        small.map((pairs) => askOf(1, pairs)),
      ),
      (input) => {
        try {
          const message = decodeTurnMessage(Buffer.from(input))
          if (message.kind === 'ask')
            expect(message.request.headers('').every((value) => value.length <= input.length)).toBe(true)
        } catch (thrown) {
          expect(String(thrown)).toBe('Error: not a message of the filter for turns')
        }
      },
    ),
    { numRuns: 2000 },
  )
})
