import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import type { PodScript } from '../support/scripted-pod.ts'
import {
  engineResponse,
  event,
  type InferencePath,
  inferenceBodies,
  inferencePaths,
  streamedResponse,
  wholeResponse,
} from '../support/scripted-responses.ts'
import { cacheLine, create, untilTurns } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** What an engine reports, and what a session's view then shows. */
const usage = { prompt_tokens: 100, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 64 } }
const counted = { prompt: 100, output: 3, cached: 64 }
const nothing = { prompt: 0, output: 0, cached: 0 }

const { pod, stack } = useScriptedStack()

/** Responds in pieces that travel apart: a stream, unless headers say otherwise. */
const inPieces =
  (pieces: readonly string[], headers?: Readonly<Record<string, string | number>>): PodScript =>
  async (_request, reply) => {
    if (headers !== undefined) reply.response.writeHead(200, headers)
    for (const piece of pieces) {
      reply.write(piece)
      await eventually(() => reply.response.writableLength === 0)
      await setImmediate()
    }
    reply.end()
  }

interface CountedTurn {
  readonly pieces: readonly string[]
  readonly path?: InferencePath
  /** Undefined: the response is a stream. */
  readonly headers?: Readonly<Record<string, string | number>>
}

/** Creates a session whose response has these pieces, and returns the token counts of the session. */
const countsOf = async ({ pieces, path = '/v1/chat/completions', headers }: CountedTurn) => {
  pod.next(inPieces(pieces, headers))
  const body = { ...inferenceBodies[path], stream: headers === undefined }
  const response = await create(stack, { path, body, headers: { 'x-session-ttl': '600' } })
  expect(response.text === pieces.join('')).toBe(true)
  return (await untilTurns(stack, response.headers.get('x-session-id') ?? '', 1)).tokens
}

/** Token counts that differ from those expected, of responses that are cut in two pieces, each at another place. */
const wrongCuts = async (text: string, turn: (pieces: readonly string[]) => CountedTurn) => {
  const cuts = Array.from({ length: text.length - 1 }, (_, index) => index + 1)
  const wrong: unknown[] = []
  for (let first = 0; first < cuts.length; first += 10) {
    const tokens = await Promise.all(
      cuts.slice(first, first + 10).map((cut) => countsOf(turn([text.slice(0, cut), text.slice(cut)]))),
    )
    wrong.push(
      ...tokens.filter((one) => JSON.stringify(one) !== JSON.stringify(counted)).map((one) => ({ first, one })),
    )
  }
  return wrong
}

const json = { 'content-type': 'application/json' }
const other = { prompt_tokens: 7, completion_tokens: 7 }
const long = Array.from({ length: 40_000 }, (_, index) => ({ [`${index}`]: '{"}' }))

describe('the token counts of a JSON response', () => {
  test.each(inferencePaths)('are those of its usage: %s', async (path) => {
    expect(await countsOf({ pieces: [JSON.stringify(wholeResponse(path, counted))], path, headers: json })).toEqual(
      counted,
    )
  })

  test.each<{ what: string; text: string; expected: typeof counted }>([
    { what: 'at its end', text: JSON.stringify({ choices: [], usage }), expected: counted },
    {
      what: 'at its beginning',
      text: JSON.stringify({ usage, choices: [{ text: '"}' }], id: 'x' }),
      expected: counted,
    },
    { what: 'before much else', text: JSON.stringify({ usage, prompt_logprobs: long }), expected: counted },
    { what: 'behind much else', text: JSON.stringify({ prompt_logprobs: long, usage }), expected: counted },
    { what: 'with blanks', text: JSON.stringify({ choices: [], usage, id: 'x' }, undefined, 2), expected: counted },
    { what: 'and blanks at its end', text: `${JSON.stringify({ choices: [], usage })}\r\n`, expected: counted },
    {
      what: 'not those of another object within it, before',
      text: JSON.stringify({ tools: [{ usage: other }], usage }),
      expected: counted,
    },
    {
      what: 'of the last usage at any depth',
      text: JSON.stringify({ usage, tools: [{ usage: other }] }),
      expected: { prompt: 7, output: 7, cached: 0 },
    },
    {
      what: 'not those of a string',
      text: JSON.stringify({ content: JSON.stringify({ usage: other }), end: 'the "usage' }),
      expected: nothing,
    },
    {
      what: 'behind a string that ends like its name',
      text: JSON.stringify({ content: 'the "usage', value: 'usage', usage }),
      expected: counted,
    },
    {
      what: 'of the last usage',
      text: `{"usage":${JSON.stringify(other)},"usage":${JSON.stringify(usage)}}`,
      expected: counted,
    },
    { what: 'not of null', text: '{"usage":null}', expected: nothing },
    { what: 'not of an array', text: JSON.stringify({ usage: [other] }), expected: nothing },
    { what: 'not of no JSON', text: '"usage":{"prompt_tokens":1', expected: nothing },
    { what: 'none', text: '{}', expected: nothing },
  ])('$what', async ({ text, expected }) => {
    expect(await countsOf({ pieces: [text], headers: json })).toEqual(expected)
    const headers = { ...json, 'content-length': Buffer.byteLength(text) }
    expect(await countsOf({ pieces: [text], headers })).toEqual(expected)
  })

  test.each([
    ['application/json; charset=utf-8', counted],
    ['application/jsonl', nothing],
    ['text/plain', nothing],
  ])('with the type %s', async (type, expected) => {
    expect(await countsOf({ pieces: [JSON.stringify({ usage })], headers: { 'content-type': type } })).toEqual(expected)
  })

  test('are read wherever the response is cut', async () => {
    const text = JSON.stringify({ id: 'x', tools: [{ usage: other }], usage })

    expect(await wrongCuts(text, (pieces) => ({ pieces, headers: json }))).toEqual([])
  })

  test('are read from a response that exceeds every buffer', async () => {
    const pieces = [
      '{"text":"',
      ...Array.from({ length: 20 }, () => 'x'.repeat(1_048_576)),
      `","usage":${JSON.stringify(usage)}}`,
    ]
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)

    expect(await countsOf({ pieces, headers: { ...json, 'content-length': bytes } })).toEqual(counted)
  })
})

const delta = event({ choices: [{ delta: { content: 'hello' } }] })
const done = event('[DONE]')

describe('the token counts of a stream', () => {
  test.each(inferencePaths)('are those of its usage: %s', async (path) => {
    expect(await countsOf({ pieces: streamedResponse(path, counted), path })).toEqual(counted)
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
      what: 'not from the text of the response',
      pieces: [event({ choices: [{ delta: { content: JSON.stringify({ usage }) } }] })],
      expected: nothing,
    },
    {
      what: 'not from an invalid usage',
      pieces: [event({ usage: 'prompt_tokens' }), event({ usage: [1] })],
      expected: nothing,
    },
    {
      what: 'not from invalid numbers',
      pieces: [event({ usage: { prompt_tokens: -1, completion_tokens: 'three' } })],
      expected: nothing,
    },
  ])('$what', async ({ pieces, expected }) => {
    expect(await countsOf({ pieces: [delta, ...pieces, done] })).toEqual(expected)
  })

  test('are read wherever the stream is cut', async () => {
    const last = event({ id: 'chatcmpl-1', choices: [], usage })

    expect(await wrongCuts(last, (pieces) => ({ pieces: [delta, ...pieces, done] }))).toEqual([])
  })
})

describe('after any stream of an engine, the next request is served', () => {
  const streamedBody = { ...inferenceBodies['/v1/completions'], stream: true }
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
    pod.next(inPieces([text, done]))

    const answer = await create(stack, { body: streamedBody })

    expect(answer.status).toBe(200)
    expect(answer.text === `${text}${done}`).toBe(true)
    expect(stack.envoy.child.isRunning()).toBe(true)
    pod.next(engineResponse())
    expect(cacheLine(await create(stack, { body: streamedBody }))).toBe('miss; reason=new_session')
  })
})
