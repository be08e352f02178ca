import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createHeaderMapLookup, createTurnsCodec, toTurnDecision } from '../../src/extproc/turn-messages.ts'
import { headersIn, pairsOf } from './header-pairs.ts'

const codec = createTurnsCodec()
const latin1 = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('latin1'))

test('a header map keeps every name and value', () => {
  fc.assert(
    fc.property(fc.dictionary(latin1, latin1), (headers) => {
      const header = createHeaderMapLookup(pairsOf(headers))
      for (const [name, value] of Object.entries(headers)) expect(header(name)).toEqual([value])
    }),
  )
})

test('any bytes are a header map within their bounds, or an error', () => {
  const small = fc.array(fc.nat(12), { maxLength: 60 }).map((numbers) => Uint8Array.from(numbers))
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), small), (input) => {
      try {
        const header = createHeaderMapLookup(Buffer.from(input))
        expect(header('').every((value) => value.length <= input.length)).toBe(true)
      } catch (thrown) {
        expect(String(thrown)).toBe('Error: not a header map')
      }
    }),
    { numRuns: 2000 },
  )
})

test.each([
  { name: 'nothing', bytes: [] },
  { name: 'fewer lengths than it says', bytes: [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
  { name: 'a header that ends behind it', bytes: [1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0] },
])('$name is no header map', ({ bytes }) => {
  expect(() => createHeaderMapLookup(Buffer.from(bytes))).toThrow('not a header map')
})

test('bytes that are no message are an error', () => {
  expect(() => codec.decode(Buffer.from([0x0a, 9, 1]))).toThrow()
})

test('a model that JSON writes with escapes is left to the engine', () => {
  const modelOf = (model: string): unknown => {
    const decision = toTurnDecision(1, {
      kind: 'forward',
      setHeaders: {},
      destinations: undefined,
      ctx: { model },
    })
    return 'forward' in decision ? decision.forward.model : undefined
  }
  expect(['ü-1', 'a\nb', 'a"b'].map(modelOf)).toEqual(['ü-1', '', ''])
})

test('headers of a forwarded request keep their bytes', () => {
  const setHeaders = { ':path': '/v1/completions', 'x-a': 'é' }
  const decision = toTurnDecision(1, { kind: 'forward', setHeaders, destinations: undefined, ctx: {} })
  expect('forward' in decision && headersIn(decision.forward.headers)).toEqual(setHeaders)
})
