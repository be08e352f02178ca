import { describe, expect, test } from '@jest/globals'
import { HpackDecoder } from '../../../../src/extproc/http2/hpack/hpack-decoder.ts'

const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(' ', ''), 'hex')

const decode = (decoder: HpackDecoder, block: Buffer): readonly string[] | undefined => {
  const fields: string[] = []
  return decoder.decode(block, ({ name, value }) => fields.push(`${name}: ${value}`)) ? fields : undefined
}

describe('the examples of RFC 7541', () => {
  const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com']
  const second = [...first, 'cache-control: no-cache']
  const third = [
    ':method: GET',
    ':scheme: https',
    ':path: /index.html',
    ':authority: www.example.com',
    'custom-key: custom-value',
  ]

  test('C.3: requests without Huffman coding', () => {
    const decoder = new HpackDecoder()
    expect(decode(decoder, hex('8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d'))).toEqual(first)
    expect(decode(decoder, hex('8286 84be 5808 6e6f 2d63 6163 6865'))).toEqual(second)
    expect(decode(decoder, hex('8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65'))).toEqual(
      third,
    )
  })

  test('C.4: requests with Huffman coding', () => {
    const decoder = new HpackDecoder()
    expect(decode(decoder, hex('8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'))).toEqual(first)
    expect(decode(decoder, hex('8286 84be 5886 a8eb 1064 9cbf'))).toEqual(second)
    expect(decode(decoder, hex('8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf'))).toEqual(third)
  })

  test.each([
    ['with indexing', '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', 'custom-key: custom-header'],
    ['without indexing', '040c 2f73 616d 706c 652f 7061 7468', ':path: /sample/path'],
    ['never indexed', '1008 7061 7373 776f 7264 0673 6563 7265 74', 'password: secret'],
    ['indexed', '82', ':method: GET'],
  ])('C.2: a field %s', (_name, block, field) => {
    expect(decode(new HpackDecoder(), hex(block))).toEqual([field])
  })
})

describe('the table', () => {
  const named = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([0x40, name.length]),
      Buffer.from(name),
      Buffer.from([0x7f, value.length - 127]),
      Buffer.from(value),
    ])

  test('the oldest fields leave when it is full', () => {
    const decoder = new HpackDecoder()
    for (let count = 0; count < 500; count++) {
      decode(decoder, named(`n${count}`, String(count % 10).repeat(200)))
    }
    const fields = 4096 / (4 + 200 + 32)
    expect(decode(decoder, Buffer.from([0x80 + 62]))).toEqual([`n499: ${'9'.repeat(200)}`])
    expect(decode(decoder, Buffer.from([0x80 + 62 + Math.floor(fields) - 1]))).toEqual([`n483: ${'3'.repeat(200)}`])
    expect(decode(decoder, Buffer.from([0x80 + 62 + Math.floor(fields)]))).toBeUndefined()
  })

  test('it can be made smaller, and as large as before again', () => {
    const decoder = new HpackDecoder()
    decode(decoder, named('a', 'x'.repeat(200)))
    expect(decode(decoder, hex('20 82'))).toEqual([':method: GET'])
    expect(decode(decoder, hex('be'))).toBeUndefined()
    expect(decode(decoder, hex('3fe11f 82'))).toEqual([':method: GET'])
    decode(decoder, named('b', 'y'.repeat(200)))
    expect(decode(decoder, hex('be'))).toEqual([`b: ${'y'.repeat(200)}`])
  })

  test('a field larger than the table empties it', () => {
    const decoder = new HpackDecoder()
    decode(decoder, named('a', 'x'.repeat(200)))
    const large = Buffer.concat([hex('4001 62 7f 8926'), Buffer.alloc(5000, 'y')])
    expect(decode(decoder, large)).toEqual([`b: ${'y'.repeat(5000)}`])
    expect(decode(decoder, hex('be'))).toBeUndefined()
  })
})

describe('what is no block', () => {
  test.each([
    ['index 0', '80'],
    ['an index beyond the tables', 'be'],
    ['an index without end', 'ff'],
    ['an index that is too long', 'ff ff ff ff ff ff ff ff ff ff 01'],
    ['zeros without end', 'ff 80 80 80 80 80 80 80 80 80 00'],
    ['a name beyond the tables', '7f 01 01 61'],
    ['a name that is cut off', '40 05 61'],
    ['a missing value', '40 01 61'],
    ['a length without end', '40 01 61 7f'],
    ['a table larger than allowed', '3f e2 1f'],
    ['a table size behind a field', '82 20'],
    ['a Huffman code of more than seven bits of padding', '04 82 1f ff'],
    ['a Huffman code padded with zeros', '04 81 00'],
    ['the end of a string in a Huffman code', '04 84 ff ff ff ff'],
  ])('%s', (_name, block) => {
    expect(decode(new HpackDecoder(), hex(block))).toBeUndefined()
  })
})
