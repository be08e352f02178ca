import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { redactFields, scrubText } from '../../../src/telemetry/redact.ts'

const sessionId = `ctx_${'aB3_-xyz'.repeat(4)}`
const sessionKey = createHash('sha256').update(sessionId).digest('base64url')

describe('redactFields', () => {
  const names = [
    'authorization Authorization proxy-authorization cookie set-cookie idempotency-key x-api-key apiKey password secret token',
    'x-session-id xSessionId X_SESSION_ID sessionId redisUrl prompt messages input instructions content body',
  ]
  test.each(names.join(' ').split(' '))('%s is redacted at every depth', (name) => {
    expect(redactFields({ [name]: 'hidden', a: { b: [{ [name]: ['hidden'] }] } })).toEqual({
      [name]: '[redacted]',
      a: { b: [{ [name]: '[redacted]' }] },
    })
  })

  test('numbers under names of content are kept', () => {
    expect(redactFields({ prompt: 12, input: 3, password: 12 })).toEqual({
      prompt: 12,
      input: 3,
      password: '[redacted]',
    })
  })

  test('other fields are kept', () => {
    const fields = {
      pod: 'a:1',
      tokens: 12,
      ready: true,
      nothing: null,
      absent: undefined,
      promptTokens: 3,
      list: [1, 'x'],
    }
    expect(redactFields(fields)).toEqual(fields)
  })

  test.each([
    { name: 'a big integer', value: 12n, shown: '12' },
    { name: 'a buffer', value: Buffer.from('hidden'), shown: '[6 bytes]' },
    { name: 'a date', value: new Date(0), shown: '1970-01-01T00:00:00.000Z' },
    { name: 'an invalid date', value: new Date(Number.NaN), shown: null },
    { name: 'a map', value: new Map([['prompt', 'hidden']]), shown: { prompt: '[redacted]' } },
    { name: 'a set', value: new Set(['x']), shown: ['x'] },
    { name: 'a session id in a text', value: `no ${sessionId}!`, shown: `no session:${sessionKey.slice(0, 8)}!` },
  ])('$name becomes loggable', ({ value, shown }) => {
    expect(redactFields({ value })).toEqual({ value: shown })
  })

  test('a cycle is cut', () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    expect(JSON.stringify(redactFields(circle))).toContain('[…]')
  })

  test('long lists are cut', () => {
    expect(redactFields({ list: Array.from({ length: 500 }, (_, index) => index) })['list']).toHaveLength(100)
  })

  test('an error is described with cause, code and stack, both scrubbed', () => {
    const cause = Object.assign(new Error(`connect to redis://user:pass@host:6379 for ${sessionId}`), {
      code: 'ECONNREFUSED',
    })
    const { err } = redactFields({ err: new TypeError('failed', { cause }) })
    expect(err).toMatchObject({
      type: 'TypeError',
      message: 'failed',
      cause: {
        type: 'Error',
        code: 'ECONNREFUSED',
        message: `connect to redis://[redacted]@host:6379 for session:${sessionKey.slice(0, 8)}`,
      },
    })
    expect(err).toHaveProperty('stack', expect.arrayContaining([expect.stringMatching(/^at .*redact\.test\.ts/)]))
  })

  test('all errors of an aggregate are described', () => {
    const { err } = redactFields({ err: new AggregateError([new Error('one'), new Error('two')], 'both') })
    expect(err).toMatchObject({ message: 'both', errors: [{ message: 'one' }, { message: 'two' }] })
  })

  test('the message of a SyntaxError is redacted', () => {
    const parse = (): unknown => {
      try {
        return JSON.parse('{"prompt": hidden words}')
      } catch (error) {
        return error
      }
    }
    const logged = JSON.stringify(redactFields({ err: parse() }))
    expect(logged).toContain('SyntaxError')
    expect(logged).not.toContain('hidden')
  })

  test('the stack does not repeat a message of several lines', () => {
    const logged = redactFields({ err: new Error(`first\n    second ${sessionId}`) })
    expect(JSON.stringify(logged)).not.toContain(sessionId)
  })
})

describe('scrubText', () => {
  test.each([
    { text: 'Authorization: Bearer sk-123abc', scrubbed: 'Authorization: Bearer [redacted]' },
    { text: '{"authorization":"basic dXNlcjpw"}', scrubbed: '{"authorization":"basic [redacted]"}' },
    { text: 'rediss://:p%40ss@host/0 failed', scrubbed: 'rediss://[redacted]@host/0 failed' },
    { text: 'http://host:8000/path', scrubbed: 'http://host:8000/path' },
    { text: 'ctx_short stays', scrubbed: 'ctx_short stays' },
    { text: 'the bearer', scrubbed: 'the bearer' },
  ])('$text', ({ text, scrubbed }) => {
    expect(scrubText(text)).toBe(scrubbed)
  })

  test('a long string is cut after scrubbing, so that no part of an id remains', () => {
    const scrubbed = scrubText(`${'x'.repeat(1_990)} ${sessionId} ${'y'.repeat(1_000)}`)
    expect(scrubbed).toHaveLength(2_001)
    expect(scrubbed).not.toContain('ctx_')
  })
})
