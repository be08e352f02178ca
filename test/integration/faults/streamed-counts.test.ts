import { describe, expect, jest, test } from '@jest/globals'
import { engineAnswer, event, type InferencePath, inferencePaths, streamedAnswer } from '../support/scripted-answers.ts'
import { useScriptedStack } from '../support/scripted-stack.ts'
import { counted, inPieces, nothing, tokensOfFirstTurn, usage } from './counted-answers.ts'
import { cacheLine, create } from './support.ts'

jest.setTimeout(60_000)

const bench = useScriptedStack()

const bodies: Readonly<Record<InferencePath, Record<string, unknown>>> = {
  '/v1/completions': { model: 'scripted', prompt: 'hello', stream: true },
  '/v1/chat/completions': { model: 'scripted', messages: [{ role: 'user', content: 'hello' }], stream: true },
  '/v1/responses': { model: 'scripted', input: 'hello', stream: true },
}

/** Creates a session with an answer of these pieces, and tells what was counted of it. */
const countsOf = async (pieces: readonly string[], path: InferencePath = '/v1/chat/completions') => {
  bench.pod.next(inPieces(pieces))
  const answer = await create(bench.stack, { path, body: bodies[path], headers: { 'x-session-ttl': '600' } })
  expect(answer.text).toBe(pieces.join(''))
  return tokensOfFirstTurn(bench.stack, answer)
}

const delta = event({ choices: [{ delta: { content: 'hello' } }] })
const done = event('[DONE]')

describe('the token counts of a stream', () => {
  test.each(inferencePaths)('are those of its usage: %s', async (path) => {
    expect(await countsOf(streamedAnswer(path, counted), path)).toEqual(counted)
  })

  test.each([
    {
      what: 'without details',
      pieces: [event({ usage: { prompt_tokens: 7, completion_tokens: 2 } })],
      expected: { prompt: 7, output: 2, cached: 0 },
    },
    { what: 'after null in earlier events', pieces: [event({ usage: null }), event({ usage })], expected: counted },
    {
      what: 'in every event, of which the last counts',
      pieces: [event({ usage: { ...usage, completion_tokens: 1 } }), event({ usage })],
      expected: counted,
    },
    {
      what: 'with blanks',
      pieces: [`data: {"usage" : { "prompt_tokens" : 100 , "completion_tokens" : 3, "cached_tokens": 64}}\n\n`],
      expected: counted,
    },
    { what: 'with lines that end with CRLF', pieces: [event({ usage }).replaceAll('\n', '\r\n')], expected: counted },
    {
      what: 'in an event with much else',
      pieces: [event({ filling: 'x'.repeat(300_000), usage, more: 'x'.repeat(300_000) })],
      expected: counted,
    },
    {
      what: 'from the timings of llama-server',
      pieces: [event({ timings: { prompt_n: 36, cache_n: 64, predicted_n: 3 } })],
      expected: counted,
    },
    {
      what: 'not from the text of the answer',
      pieces: [event({ choices: [{ delta: { content: JSON.stringify({ usage }) } }] })],
      expected: nothing,
    },
    {
      what: 'not from a usage that is none',
      pieces: [event({ usage: 'prompt_tokens' }), event({ usage: [1] })],
      expected: nothing,
    },
    {
      what: 'not from numbers that are none',
      pieces: [event({ usage: { prompt_tokens: -1, completion_tokens: 'three' } })],
      expected: nothing,
    },
  ])('$what', async ({ pieces, expected }) => {
    expect(await countsOf([delta, ...pieces, done])).toEqual(expected)
  })

  test('are read wherever the stream is cut', async () => {
    const last = event({ id: 'chatcmpl-1', choices: [], usage })
    const cuts = Array.from({ length: last.length - 1 }, (_, index) => index + 1)

    const wrong: unknown[] = []
    for (const cut of cuts) {
      const tokens = await countsOf([delta, last.slice(0, cut), last.slice(cut), done])
      if (JSON.stringify(tokens) !== JSON.stringify(counted)) wrong.push({ cut, tokens })
    }

    expect(wrong).toEqual([])
  })
})

describe('whatever an engine streams, the next request is served', () => {
  const nested = (count: number): string => `${'{"usage":'.repeat(count)}1${'}'.repeat(count)}`

  test.each([
    ...['1', '-0', '1.5', '"text"', 'null', 'true', '[1]', '{}', '', ' ', '[[[[', '{"a"', '"\\ud800"', '\ufffd'].map(
      (data) => ({ data: data as string, text: `data: ${data}\n\n` }),
    ),
    { data: 'a number without end', text: `data: {"usage":{"prompt_tokens":${'9'.repeat(200_000)}}}\n\n` },
    { data: 'a usage without end', text: `data: {"usage":{${'"a":1,'.repeat(100_000)}` },
    { data: 'many usages', text: `data: ${nested(100_000)}\n\n` },
    { data: 'many usages that never open', text: `data: ${'"usage" '.repeat(100_000)}\n\n` },
    { data: 'a usage before many blanks', text: `data: {"usage"${' '.repeat(500_000)}}\n\n` },
    { data: 'many brackets', text: `data: ${'['.repeat(500_000)}\n\n` },
    { data: 'no line at all', text: 'x'.repeat(500_000) },
    { data: 'only ends of lines', text: '\n'.repeat(500_000) },
  ])('$data', async ({ text }) => {
    bench.pod.next(inPieces([text, done]))

    const answer = await create(bench.stack, { body: bodies['/v1/completions'] })

    expect(answer.status).toBe(200)
    expect(answer.text === `${text}${done}`).toBe(true)
    expect(bench.stack.envoy.child.isRunning()).toBe(true)
    bench.pod.next(engineAnswer())
    expect(cacheLine(await create(bench.stack, { body: bodies['/v1/completions'] }))).toBe('miss; reason=new_session')
  })
})
