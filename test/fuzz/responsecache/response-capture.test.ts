import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createResponseCheck } from '../../../src/responsecache/finished-response.ts'
import { createMemoryResponseCache } from '../../../src/responsecache/response-cache.ts'
import { createResponseCaptures, type ResponseCapture } from '../../../src/responsecache/response-capture.ts'
import { type ResponseForm, responseKeyOf } from '../../../src/responsecache/response-key.ts'
import { piecesOf } from '../../support/pieces-of.ts'

const contentTypes: Readonly<Record<ResponseForm, string>> = { json: 'application/json', stream: 'text/event-stream' }
const header =
  (form: ResponseForm) =>
  (name: string): readonly string[] =>
    name === 'content-type' ? [contentTypes[form]] : []

/** Whole responses of any length, in either form. */
const anyResponse = fc
  .tuple(fc.array(fc.string({ unit: 'grapheme', maxLength: 40 }), { maxLength: 40 }), fc.boolean())
  .map(([words, isStream]): { readonly form: ResponseForm; readonly body: Buffer } => {
    const events = words.map((text) => `data: ${JSON.stringify({ choices: [{ text, finish_reason: null }] })}\n\n`)
    return isStream
      ? { form: 'stream', body: Buffer.from(`${events.join('')}data: [DONE]\n\n`) }
      : {
          form: 'json',
          body: Buffer.from(JSON.stringify({ choices: [{ text: words.join(''), finish_reason: 'stop' }] })),
        }
  })

const setUp = (maxEntryBytes: number, budgetBytes: number) => {
  const cache = createMemoryResponseCache({ maxBytes: 1_000_000, maxEntryBytes: 1_000_000, onEvicted: () => {} })
  return { cache, ...createResponseCaptures({ cache, maxBytes: budgetBytes, maxEntryBytes }) }
}

const keyOf = (form: ResponseForm, name = 0) =>
  responseKeyOf({ tenant: 't', model: 'm', path: '/v1/completions', form, canonicalBody: `{"a":${name}}` })

test('capture caches the whole response, however it is cut into pieces', () => {
  fc.assert(
    fc.property(anyResponse, fc.array(fc.nat(), { maxLength: 30 }), ({ form, body }, places) => {
      const { cache, bytes, begin } = setUp(100_000, 200_000)
      const capture = begin({ key: keyOf(form), form })
      capture?.head(200, header(form))
      for (const piece of piecesOf(body, places)) {
        // The piece's memory may be used again at once.
        const lent = Buffer.from(piece)
        capture?.chunk(lent)
        lent.fill(0)
      }
      capture?.end('complete')
      expect(cache.lookUp(keyOf(form))?.body.equals(body)).toBe(true)
      expect(bytes()).toBe(0)
    }),
    { numRuns: 1000 },
  )
})

test('a part of a response is never taken for a whole one', () => {
  fc.assert(
    fc.property(anyResponse, fc.nat(), ({ form, body }, at) => {
      const part = body.subarray(0, at % body.length)
      const check = createResponseCheck(form)
      check.chunk(part)
      expect(check.end(part)).toBeUndefined()
    }),
    { numRuns: 2000 },
  )
})

test('concurrent captures stay within maxBytes, and release all memory at their ends', () => {
  const anyEvent = fc.record({
    which: fc.nat(7),
    bytes: fc.nat(6000),
    act: fc.constantFrom('chunk', 'chunk', 'chunk', 'end'),
  })
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 100 }), fc.integer({ min: 0, max: 40_000 }), (events, budgetBytes) => {
      const { bytes: heldBytes, begin } = setUp(10_000, budgetBytes)
      const open = new Map<number, ResponseCapture | undefined>()
      for (const { which, bytes, act } of events) {
        if (!open.has(which)) {
          open.set(which, begin({ key: keyOf('json', which), form: 'json' }))
          open.get(which)?.head(200, header('json'))
        }
        if (act === 'chunk') open.get(which)?.chunk(Buffer.alloc(bytes))
        else {
          open.get(which)?.end('complete')
          open.delete(which)
        }
        expect(heldBytes()).toBeLessThanOrEqual(budgetBytes)
      }
      for (const capture of open.values()) capture?.end('broken')
      expect(heldBytes()).toBe(0)
    }),
    { numRuns: 1000 },
  )
})
