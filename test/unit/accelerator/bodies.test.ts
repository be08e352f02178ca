import { describe, expect, test } from '@jest/globals'
import { encodeReply, ticksToWait, told, useFilter } from './filter-bench.ts'

const { waiting } = useFilter()

describe('a body', () => {
  const verdict = (id: number, ctx: Readonly<Record<string, string>>): Buffer =>
    encodeReply(id, {
      kind: 'proceed',
      phase: 'request-headers',
      changes: { setHeaders: {}, metadata: { ctx: { turn: 't', ...ctx } } },
    })

  /** What becomes of a body by its verdict, which comes before, between or behind its pieces. */
  const edited = (
    body: string,
    ctx: Readonly<Record<string, string>>,
    when: 'before' | 'between' | 'behind' | 'before trailers' = 'behind',
  ) => {
    const { envoy, id, token } = waiting({ 'content-length': String(Buffer.byteLength(body)) })
    const decide = (): void => envoy.receive(token, verdict(id, ctx))
    if (when === 'before' || when === 'before trailers') decide()
    envoy.body(id, body.slice(0, 3), 'more')
    if (when === 'between') decide()
    envoy.body(id, body.slice(3), when === 'before trailers' ? when : 'last')
    if (when === 'behind') decide()
    const fate = envoy.fate(id)
    if (fate?.kind === 'waits') throw new Error('it should not wait')
    return fate
  }
  const errorOf = (fate: ReturnType<typeof edited>) =>
    fate?.kind === 'answered' ? { ...fate, body: JSON.parse(fate.body).error.code } : fate

  test.each(['before', 'between', 'behind', 'before trailers'] as const)(
    'gets its members when the verdict comes %s its end',
    (when) => {
      const body = '{"model":"a","prompt":"ü}"} \n'
      expect(edited(body, { splice: '"cache_salt":"s"' }, when)).toMatchObject({
        kind: 'went-on',
        headers: { 'content-length': '47' },
        body: '{"cache_salt":"s","model":"a","prompt":"ü}"} \n',
      })
    },
  )

  test('of which nothing is wanted goes on as it comes', () => {
    const { envoy, id, token } = waiting()
    envoy.body(id, '[', 'more')
    envoy.receive(token, verdict(id, {}))
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', body: '[' })
  })

  test.each([
    { name: 'ahead of the others', body: '{"b":2}', becomes: '{"a":1,"b":2}' },
    { name: 'into an empty object', body: '{ }', becomes: '{"a":1 }' },
    { name: 'without white space ahead', body: '\t {"b":2\r\n}\n', becomes: '{"a":1,"b":2\r\n}\n' },
    { name: 'beside the name as a value', body: '{"b":"a"}', becomes: '{"a":1,"b":"a"}' },
    { name: 'beside an end of the name', body: '{"ba":2}', becomes: '{"a":1,"ba":2}' },
    {
      name: 'beside escapes that no name needs',
      body: '{"b":"\\u00e9\\u000a"}',
      becomes: '{"a":1,"b":"\\u00e9\\u000a"}',
    },
    { name: 'behind one of their name', body: '{"a":2}', becomes: '{"a":2,"a":1}' },
    { name: 'behind one of their name, with white space', body: '{ "a" : 2 } ', becomes: '{ "a" : 2 ,"a":1}' },
    { name: 'behind one within another', body: '{"b":{"a":2}}', becomes: '{"b":{"a":2},"a":1}' },
    { name: 'behind one with an escape', body: '{"\\u0061":2}', becomes: '{"\\u0061":2,"a":1}' },
    { name: 'behind one with an escape, with white space', body: '{"\\u0061"\n:2}', becomes: '{"\\u0061"\n:2,"a":1}' },
    {
      name: 'beside a value with an escape that could be their name',
      body: '{"b":"\\u0061"}',
      becomes: '{"a":1,"b":"\\u0061"}',
    },
    {
      name: 'beside an object as text, with their name',
      body: '{"b":"{\\"a\\": 2, \\"\\\\u0061\\": 3}"}',
      becomes: '{"a":1,"b":"{\\"a\\": 2, \\"\\\\u0061\\": 3}"}',
    },
    {
      name: 'beside a name that ends with a backslash',
      body: '{"b\\\\":2}',
      becomes: '{"a":1,"b\\\\":2}',
    },
  ])('gets its members $name', ({ body, becomes }) => {
    const fate = edited(body, { splice: '"a":1' })
    expect(fate).toMatchObject({ kind: 'went-on', body: becomes, headers: { 'content-length': `${becomes.length}` } })
    expect(edited(body, { splice: '"c":[{"b":3}],"a":1' })).toMatchObject({
      body: becomes.startsWith('{"a":1')
        ? becomes.replace('{', '{"c":[{"b":3}],')
        : becomes.replace('"a":1', '"c":[{"b":3}],"a":1'),
    })
  })

  test('gets more members than are looked for behind its own', () => {
    const splice = Array.from({ length: 9 }, (_, index) => `"m${index}":${index}`).join(',')
    expect(edited('{"b":2}', { splice })).toMatchObject({ body: `{"b":2,${splice}}` })
  })

  test.each([
    { name: 'nothing', body: '' },
    { name: 'blanks', body: '   ' },
    { name: 'an array', body: '[1]' },
    { name: 'a brace', body: '{' },
    { name: 'an end alone', body: '}' },
    { name: 'an object that is cut', body: '{"a":1' },
    { name: 'a text behind it', body: '{"a":1} x' },
  ])('that is no object is refused: $name', ({ body }) => {
    expect(errorOf(edited(body, { splice: '"a":1' }))).toEqual({
      kind: 'answered',
      status: 400,
      details: 'ctx_invalid_json',
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false' },
      body: 'invalid_json',
    })
  })

  test.each(['before', 'behind'] as const)('beyond 16 MiB is refused, with the verdict %s it', (when) => {
    const body = `{"p":"${'x'.repeat(16_777_216)}"}`
    expect(errorOf(edited(body, { splice: '"a":1' }, when))).toMatchObject({ status: 413, body: 'request_too_large' })
  })

  const long = 'A prompt: with colons, 6 sixes and \\"quotes\\". '.repeat(50)
  test.each([
    { name: 'the same', body: '{"model":"m","prompt":"p"}', is: 'same' },
    { name: 'another', body: '{"model":"n","prompt":"p"}', is: 'other' },
    { name: 'none', body: '{"prompt":"p"}', is: 'same' },
    { name: 'the same, with white space', body: '{ "model" :\n "m" }', is: 'same' },
    { name: 'another, with white space', body: '{ "model" :\n "n" }', is: 'other' },
    { name: 'a longer one', body: '{"model":"mm"}', is: 'other' },
    { name: 'a shorter one', body: '{"model":""}', is: 'other' },
    { name: 'the same behind a long prompt', body: `{"prompt":"${long}","model":"m"}`, is: 'same' },
    { name: 'another behind a long prompt', body: `{"prompt":"${long}","model":"n"}`, is: 'other' },
    { name: 'another one within a member', body: '{"a":{"model":"n"},"model":"m"}', is: 'same' },
    { name: 'another one within a list', body: '{"a":[{"model":"n"}],"model":"m"}', is: 'same' },
    { name: 'another one within a string', body: '{"a":"\\"model\\":\\"n\\"","model":"m"}', is: 'same' },
    { name: 'the same, then another', body: '{"model":"m","model":"n"}', is: 'other' },
    { name: 'another, then the same', body: '{"model":"n","model":"m"}', is: 'same' },
    { name: 'a key that is escaped', body: '{"\\u006dodel":"n"}', is: 'other' },
    { name: 'a value that is escaped', body: '{"model":"\\u006d"}', is: 'same' },
    { name: 'another value that is escaped', body: '{"model":"\\u006e"}', is: 'other' },
    { name: 'a value that cannot be read', body: '{"model":"\\ud83d\\ude00"}', is: 'same' },
    { name: 'a number', body: '{"model":5}', is: 'same' },
    { name: 'the name as a value', body: '{"a":"model","b":"n"}', is: 'same' },
    { name: 'a string that never ends', body: '{"model":"n}', is: 'same' },
  ])('its model: $name', ({ body, is }) => {
    const fate = errorOf(edited(body, { model: 'm' }))
    if (is === 'other') expect(fate).toMatchObject({ kind: 'answered', status: 400, body: 'model_mismatch' })
    else expect(fate).toMatchObject({ kind: 'went-on', body })
  })

  test('its model: another, wherever it stands', () => {
    for (let length = 0; length < 130; length++) {
      const body = `{"prompt":"${'x'.repeat(130)}: ${'y'.repeat(length)}","model":"n"}`
      expect(errorOf(edited(body, { model: 'm' }))).toMatchObject({ kind: 'answered', body: 'model_mismatch' })
    }
  })

  test('of a turn that nobody decides goes on as it came', () => {
    const { envoy, id } = waiting()
    envoy.body(id, '{"a":1}')
    envoy.tick(ticksToWait)
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', body: '{"a":1}' })
  })

  test('whose verdict is there is not waited for by the clock, and may be left', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, verdict(id, { splice: '"a":1' }))
    envoy.tick(1000)
    envoy.end(token)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.delete(id)
    expect(told(envoy)).toEqual([])
  })
})
