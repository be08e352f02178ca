import { describe, expect, test } from '@jest/globals'
import { encodeReply, goOn, useFilter } from './filter-bench.ts'

const { waiting } = useFilter()

describe('an answer', () => {
  const json = { ':status': '200', 'content-type': 'application/json' }
  const sse = { ':status': '200', 'content-type': 'text/event-stream; charset=utf-8' }
  const usage = '{"prompt_tokens":12,"completion_tokens":3,"details":{"cached_tokens":8}}'
  const timings = '{"prompt_n":4,"cache_n":8,"predicted_n":3}'

  /** What becomes of the answer to a turn that went on. */
  const answered = (
    headers: Readonly<Record<string, string>>,
    pieces: readonly string[],
    options: { readonly told?: string; readonly end?: 'last piece' | 'trailers' } = {},
  ) => {
    const { envoy, id, token } = waiting()
    const { told = 'x-session-id:s\nx-context-cache:hit; a=b:c\n' } = options
    const ctx = { turn: 't', ...(told === '' ? {} : { headers: told }) }
    const changes = { setHeaders: {}, metadata: { ctx } }
    envoy.receive(token, encodeReply(id, { kind: 'proceed', phase: 'request-headers', changes }))
    return envoy.answer(id, headers, pieces, options.end)
  }
  /** Of stream, usage and timings. */
  const notesOf = (answer: ReturnType<typeof answered>) => answer.notes?.split('\u001e')

  test('that is one gets the gateway’s headers, over the engine’s own', () => {
    const { headers } = answered({ ...json, 'x-session-id': 'other', 'x-a': '1' }, ['{}'])
    expect(headers).toEqual({ ...json, 'x-session-id': 's', 'x-context-cache': 'hit; a=b:c', 'x-a': '1' })
  })

  test.each([252, 253, 5000])('gets headers of %i bytes, however many pieces come', (length) => {
    const told = `x-session-id:${'s'.repeat(length - 'x-session-id:\n'.length)}\n`
    const pieces = [`data: {"usage":{"a":"${'x'.repeat(length)}`, `","prompt_tokens":1`, '}}\n\ndata: [DONE]\n\n']
    const { headers, notes } = answered(sse, pieces, { told })
    expect(headers).toEqual({ ...sse, 'x-session-id': told.slice('x-session-id:'.length, -1) })
    // Longer objects than 4 KiB are no counts.
    const counts = length > 4096 ? '-' : `{"a":"${'x'.repeat(length)}","prompt_tokens":1}`
    expect(notes).toBe(`done\u001e${counts}\u001e-`)
  })

  test.each([
    { name: 'that is an error', status: '500', told: 'x-session-id:s\nx-context-cache:hit\n' },
    { name: 'of a turn of which nothing is told', status: '200', told: '' },
  ])('$name names no session', ({ status, told }) => {
    const own = { ':status': status, 'x-session-id': 'other', 'x-context-cache': 'hit' }
    expect(answered(own, ['x'], { told }).headers).toEqual({ ':status': status })
  })

  test('to a request that is no turn stays as it is', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, encodeReply(id, goOn))
    expect(envoy.answer(id, { ...sse, 'x-session-id': 'other' }, ['data: [DONE]\n'])).toEqual({
      headers: { ...sse, 'x-session-id': 'other' },
      isHeld: false,
      notes: undefined,
    })
  })

  test.each([
    { name: 'JSON', type: 'application/json', isHeld: true },
    { name: 'JSON in a character set', type: 'application/json; charset=utf-8', isHeld: true },
    { name: 'lines of JSON', type: 'application/jsonl', isHeld: false },
    { name: 'text', type: 'text/plain', isHeld: false },
    { name: 'no type', type: undefined, isHeld: false },
  ])('is held until it is whole: $name', ({ type, isHeld }) => {
    const headers = { ':status': '200', ...(type === undefined ? {} : { 'content-type': type }) }
    expect(answered(headers, ['{"usa', `ge":${usage}}`])).toMatchObject({
      isHeld,
      notes: isHeld ? `-\u001e${usage}\u001e-` : undefined,
    })
  })

  test.each([
    {
      name: 'longer than any buffer',
      headers: { ...json, 'content-length': '16777217' },
      pieces: [`{"usage":${usage}}`],
    },
    { name: 'without a body', headers: json, pieces: [] },
  ])('is not held: $name', ({ headers, pieces }) => {
    expect(answered(headers, pieces)).toMatchObject({ isHeld: false, notes: undefined })
  })

  test('that ends with trailers is whole as well', () => {
    expect(notesOf(answered(json, [`{"usage":${usage}}`], { end: 'trailers' }))).toEqual(['-', usage, '-'])
  })

  test.each([
    { name: 'at its end', body: `{"a":1,"usage":${usage}}\n`, notes: usage },
    { name: 'with white space', body: `{"usage" :\n ${usage} }`, notes: usage },
    { name: 'in its midst', body: `{"usage":${usage},"b":{"c":[1,"}"]}}`, notes: usage },
    {
      name: 'behind another within a member',
      body: `{"a":{"usage":{"prompt_tokens":99}},"usage":${usage},"b":1}`,
      notes: usage,
    },
    {
      name: 'ahead of another within a member',
      body: `{"usage":${usage},"a":{"usage":{"prompt_tokens":99}}}`,
      notes: usage,
    },
    { name: 'twice', body: `{"usage":{"prompt_tokens":99},"usage":${usage},"b":1}`, notes: usage },
    { name: 'in a string', body: '{"a":"\\"usage\\":{\\"prompt_tokens\\":1}"}', notes: undefined },
    { name: 'without a count', body: '{"usage":{"a":1}}', notes: undefined },
    { name: 'null', body: '{"usage":null}', notes: undefined },
    {
      name: 'of a length beyond all',
      body: `{"usage":{"prompt_tokens":1,"a":"${'x'.repeat(4096)}"}}`,
      notes: undefined,
    },
    { name: 'cut', body: '{"usage":{"prompt_tokens":1', notes: undefined },
    { name: 'none', body: '{"a":1}', notes: undefined },
  ])('that is JSON: its usage $name', ({ body, notes }) => {
    expect(answered(json, [body]).notes).toBe(notes === undefined ? undefined : `-\u001e${notes}\u001e-`)
  })

  const token = 'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'
  const streams = [
    { name: 'with its last event', text: `${token}data: [DONE]\n\n`, notes: ['done', '-', '-'] },
    { name: 'without a blank', text: `${token}data:[DONE]\n\n`, notes: ['done', '-', '-'] },
    {
      name: 'of responses',
      text: `event: a\n${token}event: response.completed\ndata: {}\n\n`,
      notes: ['done', '-', '-'],
    },
    { name: 'of responses, incomplete', text: 'event: response.incomplete\ndata: {}\n\n', notes: ['done', '-', '-'] },
    { name: 'that stops', text: token, notes: ['cut', '-', '-'] },
    { name: 'with an error', text: `${token}data: {"error":{}}\n\ndata: [DONE]\n\n`, notes: ['failed', '-', '-'] },
    {
      name: 'with an error behind its end',
      text: 'data: [DONE]\n\ndata:{"error":{}}\n\n',
      notes: ['failed', '-', '-'],
    },
    { name: 'with an event that is an error', text: 'event: error\ndata: {}\n\n', notes: ['failed', '-', '-'] },
    { name: 'with llama-server’s error', text: `${token}error: {"a":1}\n\n`, notes: ['failed', '-', '-'] },
    { name: 'that failed', text: 'event: response.failed\ndata: {}\n\n', notes: ['failed', '-', '-'] },
    {
      name: 'with these words in a token',
      text: 'data: {"content":"data: [DONE] error:"}\n\n',
      notes: ['cut', '-', '-'],
    },
    { name: 'with usage', text: `${token}data: {"usage":${usage}}\n\ndata: [DONE]\n\n`, notes: ['done', usage, '-'] },
    {
      name: 'with usage in every event',
      text: `data: {"usage":{"prompt_tokens":1}}\n\ndata: {"usage":${usage}}\n\n`,
      notes: ['cut', usage, '-'],
    },
    {
      name: 'with usage that is null at first',
      text: `data: {"usage":null}\n\ndata: {"usage": ${usage}}\n\n`,
      notes: ['cut', usage, '-'],
    },
    { name: 'with timings', text: `data: {"timings":${timings}}\n\ndata: [DONE]\n\n`, notes: ['done', '-', timings] },
    { name: 'with both', text: `data: {"timings" : ${timings},"usage":${usage}}\n\n`, notes: ['cut', usage, timings] },
  ]
  test.each(streams)('that is a stream $name, however it is cut', ({ text, notes }) => {
    for (let length = 1; length <= text.length; length++) {
      const pieces = text.match(new RegExp(`[^]{1,${length}}`, 'gu')) ?? []
      const answer = answered(sse, pieces)
      expect({ length, isHeld: answer.isHeld, notes: notesOf(answer) }).toEqual({ length, isHeld: false, notes })
    }
  })
})
