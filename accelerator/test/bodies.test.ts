import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { forward, reply, sentBy, useFilter } from './filter-fixture.ts'

const { start, waiting } = useFilter()

/** The request after its decision, which comes before, between or after the pieces of its body. */
const edited = (
  body: string,
  ctx: Readonly<Record<string, string>>,
  when: 'before' | 'between' | 'after' | 'before trailers' = 'after',
) => {
  const { envoy, id, token } = waiting({ 'content-length': String(Buffer.byteLength(body)) })
  const decide = (): void => envoy.receive(token, reply(forward(id, ctx)))
  if (when === 'before' || when === 'before trailers') decide()
  envoy.body(id, body.slice(0, 3), 'more')
  if (when === 'between') decide()
  envoy.body(id, body.slice(3), when === 'before trailers' ? when : 'last')
  if (when === 'after') decide()
  const fate = envoy.fate(id)
  if (fate?.kind !== 'forwarded') throw new Error('the request should be forwarded')
  return { body: fate.body, headers: fate.headers }
}

/** What the Lua filter is left with. */
const leftToLua = (body: string) => ({
  body,
  headers: { 'content-length': String(body.length), 'x-context-turn-splice': '"a":1', 'x-context-turn-model': 'm' },
})

describe('a body', () => {
  test.each([
    { name: 'before the body', when: 'before' },
    { name: 'in the middle of the body', when: 'between' },
    { name: 'after the body', when: 'after' },
    { name: 'before a body that ends with trailers', when: 'before trailers' },
  ] as const)('gets its members when the decision comes $name', ({ when }) => {
    const body = '{"model":"a","prompt":"ü}"} \n'
    const becomes = '{"model":"a","prompt":"ü}","cache_salt":"s"}'
    expect(edited(body, { splice: '"cache_salt":"s"' }, when)).toEqual({
      body: becomes,
      headers: { 'content-length': String(Buffer.byteLength(becomes)) },
    })
  })

  test('that needs no change is not waited for', () => {
    const { envoy, id, token } = waiting()
    envoy.body(id, '[', 'more')
    envoy.receive(token, reply(forward(id)))
    expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded', body: '[' })
  })

  test.each([
    { name: 'after the others', body: '{"b":2}', becomes: '{"b":2,"a":1}' },
    { name: 'into an empty object', body: ' { } ', becomes: ' { "a":1}' },
    { name: 'without the white space at its end', body: '\t {"b":2\r\n}\n', becomes: '\t {"b":2\r\n,"a":1}' },
    { name: 'after one of their name', body: '{"a":2}', becomes: '{"a":2,"a":1}' },
    { name: 'after one of their name with escapes', body: '{"\\u0061":2}', becomes: '{"\\u0061":2,"a":1}' },
    { name: 'into what is no JSON, which stays none', body: '{"b":}', becomes: '{"b":,"a":1}' },
    { name: 'into an object that ends early, which stays invalid', body: '{}{}', becomes: '{}{,"a":1}' },
  ])('gets its members $name', ({ body, becomes }) => {
    const { headers, body: text } = edited(body, { splice: '"a":1' })
    expect(text).toBe(becomes)
    expect(headers).toEqual({ 'content-length': String(becomes.length) })
  })

  test.each(['gateway lua', '"gateway lua"'])(
    'is left to the Lua file, and not waited for, with the configuration %s',
    (text) => {
      const envoy = start(text)
      const id = envoy.request({ ':path': '/v1/completions' })
      const [asked] = sentBy(envoy)
      envoy.receive(asked?.token ?? 0, reply(forward(id, { splice: '"a":1', model: 'm' })))
      const headers = { 'x-context-turn-splice': '"a":1', 'x-context-turn-model': 'm' }
      expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded', headers })
    },
  )

  test.each(['', '   ', '[1]', '{', '}', '{"a":1', '{"a":1} x', '{"a":1}\f', '\f{"a":1}'])(
    'that is no object is left to the Lua filter unchanged: %j',
    (body) => {
      expect(edited(body, { splice: '"a":1', model: 'm' })).toEqual(leftToLua(body))
    },
  )

  test.each([
    { name: 'the same', body: '{"model":"m"}' },
    { name: 'the same with white space', body: '{"x":1, "model"\t: \n"m" }' },
    { name: 'none', body: '{"b":1}' },
    { name: 'the same behind another one', body: '{"model":"x","model":"m"}' },
    { name: 'the same behind a text of that name', body: '{"b":"model","model":"m"}' },
  ])('with the expected model is spliced: $name', ({ body }) => {
    expect(edited(body, { splice: '"a":1', model: 'm' }).body).toBe(`${body.slice(0, -1)},"a":1}`)
  })

  test.each([
    { name: 'another', body: '{"model":"x"}' },
    { name: 'a longer one', body: '{"model":"mm"}' },
    { name: 'a shorter one', body: '{"model":""}' },
    { name: 'the same with an escape', body: '{"model":"\\u006d"}' },
    { name: 'a number', body: '{"model":1}' },
    { name: 'a string that does not end', body: '{"model":"m}' },
    { name: 'the name as a value', body: '{"b":"model"}' },
  ])('whose model may be another is left to the Lua filter unchanged: $name', ({ body }) => {
    expect(edited(body, { splice: '"a":1', model: 'm' })).toEqual(leftToLua(body))
  })

  test('with the expected model and no members to add stays unchanged', () => {
    const body = '{"model":"m"} '
    expect(edited(body, { model: 'm' })).toEqual({ body, headers: { 'content-length': '14' } })
  })

  test('of 16 MiB is spliced', () => {
    const body = `{"p":"${'x'.repeat(16_777_216 - 8)}"}`
    expect(edited(body, { splice: '"a":1' }).headers).toEqual({ 'content-length': '16777222' })
  })
})

test('"model" is found wherever it is in a body', () => {
  for (let before = 0; before < 70; before++) {
    const padding = '"m'.repeat(before).slice(0, before)
    for (const behind of ['', ' '.repeat(3), ' '.repeat(40)]) {
      const body = `{${padding}"model":"x"${behind}}`
      expect(edited(body, { splice: '"a":1', model: 'm' }).body).toBe(body)
    }
  }
})

const objectOf = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

test('any object gets the members over its own, and what is no object does not become one', () => {
  const envoy = start()
  const pieces = ['{', '}', '[', ']', '"', ':', ',', ' ', '\n', '\f', '\\', '"a"', '"model"', '"m"', '1', '\u0000']
  const hostile = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''))
  const object = fc.dictionary(fc.constantFrom('a', 'b', 'model'), fc.jsonValue()).map((value) => JSON.stringify(value))
  fc.assert(
    fc.property(fc.oneof(hostile, object), (body) => {
      const id = envoy.request({})
      for (const token of envoy.streams.keys()) envoy.receive(token, reply())
      const token = sentBy(envoy).findLast((sent) => sent.id === id)?.token ?? 0
      envoy.body(id, body)
      envoy.receive(token, reply(forward(id, { splice: '"a":[2]', model: 'm' })))
      const fate = envoy.fate(id)
      if (fate?.kind !== 'forwarded') throw new Error('the request should be forwarded')
      const isLeftToLua = fate.headers['x-context-turn-splice'] !== undefined
      const object = objectOf(body)
      expect(isLeftToLua ? fate.body : objectOf(fate.body)).toEqual(
        isLeftToLua ? body : object && { ...object, a: [2] },
      )
      for (const stream of envoy.streams.values()) stream.sent.length = 0
      envoy.delete(id)
    }),
    { numRuns: 3000 },
  )
})
