import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createOutputRing } from '../../../../playground/launcher/output-ring.ts'

describe('createOutputRing', () => {
  test('keeps lines in the order in which they were completed, and unfinished ones last', () => {
    const ring = createOutputRing()
    const out = ring.openStream()
    const err = ring.openStream()
    out.write('one\nfirst half, ')
    err.write('warning\n')
    out.write('second half\nrest')
    expect(ring.lines()).toEqual(['one', 'warning', 'first half, second half', 'rest'])
  })

  test('forgets the oldest lines', () => {
    const ring = createOutputRing({ maxLines: 2 })
    ring.openStream().write('one\ntwo\nthree\n')
    expect(ring.lines()).toEqual(['two', 'three'])
  })

  test('cuts long lines, finished or not', () => {
    const ring = createOutputRing({ maxLineCharacters: 4 })
    const out = ring.openStream()
    out.write('123456789\n')
    for (const piece of ['abc', 'def', 'ghi']) out.write(piece)
    expect(ring.lines()).toEqual(['1234…', 'abcd…'])
  })

  test('drops the carriage return of a line end', () => {
    const ring = createOutputRing()
    ring.openStream().write('one\r\ntwo\r\n')
    expect(ring.lines()).toEqual(['one', 'two'])
  })

  test('the end of a stream completes its last line once', () => {
    const ring = createOutputRing()
    const seen: string[] = []
    ring.onLine((line) => seen.push(line))
    const out = ring.openStream()
    out.write('last words')
    out.end()
    out.end()
    expect(seen).toEqual(['last words'])
    expect(ring.lines()).toEqual(['last words'])
  })

  test('a listener hears lines until it leaves', () => {
    const ring = createOutputRing()
    const out = ring.openStream()
    const seen: string[] = []
    out.write('before\n')
    const leave = ring.onLine((line) => seen.push(line))
    out.write('during\n')
    leave()
    out.write('after\n')
    expect(seen).toEqual(['during'])
  })

  test('the same lines come of a text however it is split', () => {
    const line = fc.string({ maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, ' '))
    fc.assert(
      fc.property(fc.array(line, { maxLength: 20 }), fc.array(fc.nat(400), { maxLength: 20 }), (lines, cuts) => {
        const text = lines.map((each) => `${each}\n`).join('')
        const ring = createOutputRing({ maxLines: 10 })
        const out = ring.openStream()
        const borders = [...cuts, 0, text.length].map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b)
        for (const [index, border] of borders.entries()) out.write(text.slice(borders[index - 1] ?? 0, border))
        expect(ring.lines()).toEqual(lines.slice(-10))
      }),
    )
  })
})
