import { beforeEach, describe, expect, test } from '@jest/globals'
import { createOutageLog, type OutageLog, sentenceOf } from '../../../src/telemetry/outage-log.ts'

describe('the log of an outage', () => {
  let nowMs: number
  let lines: unknown[]
  let outage: OutageLog

  beforeEach(() => {
    nowMs = 0
    lines = []
    const write =
      (level: string) =>
      (message: string, fields: unknown): void =>
        void lines.push([level, message, fields])
    outage = createOutageLog({ info: write('info'), warn: write('warn') }, { subject: 'Redis', nowMs: () => nowMs })
  })

  test('an outage has one warning when it begins, one a minute, and one line when it ends', () => {
    for (; nowMs < 90_000; nowMs += 1_000) outage.failed(new Error('refused'))
    outage.recovered()
    outage.recovered()

    expect(lines).toEqual([
      ['warn', 'Redis is unavailable', { cause: 'refused', faults: 1 }],
      ['warn', 'Redis is unavailable', { cause: 'refused', faults: 60 }],
      ['info', 'Redis is available again', { afterSeconds: 90 }],
    ])
  })

  test('the next outage has a warning of its own at once', () => {
    outage.failed(new Error('refused'))
    outage.recovered()
    outage.failed(new Error('lost'))

    expect(lines.at(-1)).toEqual(['warn', 'Redis is unavailable', { cause: 'lost', faults: 1 }])
  })

  test.each([
    {
      name: 'an error with causes',
      error: new Error('a', { cause: new Error('b', { cause: new Error('c') }) }),
      cause: 'a: b: c',
    },
    { name: 'an error without a message', error: new TypeError(''), cause: 'TypeError' },
    { name: 'a text', error: 'silence', cause: 'silence' },
  ])('the cause of $name is one sentence', ({ error, cause }) => {
    expect(sentenceOf(error)).toBe(cause)
  })
})
