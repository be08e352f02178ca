import { describe, expect, test } from '@jest/globals'
import { createAccessLog } from '../../../src/accesslog/access-log.ts'
import { field, int } from '../extproc/protobuf-bytes.ts'
import { batchOf } from './log-entries.ts'

const method = createAccessLog({
  service: { endTurn: async () => {}, clientDisconnected: async () => {} },
  hooks: { entryMalformed: () => {}, fault: () => {} },
})

describe('the access log', () => {
  test('entries of several sources and scopes are decoded in order', () => {
    expect(method.decode(Buffer.concat([batchOf('a'), batchOf('b', 'c')]))).toEqual(['a', 'b', 'c'])
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['only who sends it', field(1, field(1, field(1, 'x')))],
    ['no record', field(1, field(2, field(1, field(1, 'envoy'))))],
  ])('%s is an empty batch', (_name, bytes) => {
    expect(method.decode(bytes)).toEqual([])
  })

  test.each([
    ['no body', field(2, int(2, 9)), ''],
    ['a number', field(2, field(5, int(3, 1))), ''],
    ['a list', field(2, field(5, field(5, field(1, field(1, 'a'))))), ''],
    ['two texts, of which the last counts', field(2, field(5, field(1, 'a'), field(1, 'b'))), 'b'],
    ['two bodies, of which the last counts', field(2, field(5, field(1, 'a')), field(5, field(1, 'b'))), 'b'],
  ])('a record of %s', (_name, record, text) => {
    expect(method.decode(field(1, field(2, record)))).toEqual([text])
  })

  test('a batch of tiny entries that would take seconds to decode is refused', () => {
    const tiny = (bytes: number) => field(1, field(2, Buffer.alloc(bytes, field(2))))
    expect(method.decode(tiny(32_000))).toHaveLength(16_000)
    expect(() => method.decode(tiny(33_000))).toThrow('beside a body')
  })

  test('invalid bytes throw', () => {
    expect(() => method.decode(Buffer.from([0x0a, 0x7f, 0x00]))).toThrow()
  })
})
