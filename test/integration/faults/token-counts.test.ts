import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import type { PodScript } from '../support/pod-script.ts'
import {
  engineResponse,
  event,
  type InferencePath,
  inferenceBodies,
  inferencePaths,
  messagesEvent,
  streamedResponse,
  wholeResponse,
} from '../support/scripted-responses.ts'
import { cacheLine, create, createdId, untilTurns, use } from '../support/sessions.ts'
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
const otherText = JSON.stringify(other)
const ofOther = { prompt: 7, output: 7, cached: 0 }
const long = Array.from({ length: 40_000 }, (_, index) => ({ [`${index}`]: '{"}' }))

describe('the token counts of a JSON response', () => {
  test.each(inferencePaths)('are those of its usage: %s', async (path) => {
    expect(await countsOf({ pieces: [JSON.stringify(wholeResponse(path, counted))], path, headers: json })).toEqual(
      counted,
    )
  })

  test.each<[string, string, typeof counted]>([
    ['at its end', JSON.stringify({ choices: [], usage }), counted],
    ['at its beginning', JSON.stringify({ usage, choices: [{ text: '"}' }], id: 'x' }), counted],
    ['before much else', JSON.stringify({ usage, prompt_logprobs: long }), counted],
    ['behind much else', JSON.stringify({ prompt_logprobs: long, usage }), counted],
    ['with blanks', JSON.stringify({ choices: [], usage, id: 'x' }, undefined, 2), counted],
    ['and blanks at its end', `${JSON.stringify({ choices: [], usage })}\r\n`, counted],
    ['not those of another object within it, before', JSON.stringify({ tools: [{ usage: other }], usage }), counted],
    ['of the last usage at any depth', JSON.stringify({ usage, tools: [{ usage: other }] }), ofOther],
    ['not those of a string', JSON.stringify({ content: `{"usage":${otherText}}`, end: 'the "usage' }), nothing],
    ['behind a string that ends like its name', JSON.stringify({ content: 'the "usage', v: 'usage', usage }), counted],
    ['of the last usage', `{"usage":${otherText},"usage":${JSON.stringify(usage)}}`, counted],
    ['not of null', '{"usage":null}', nothing],
    ['not of an array', JSON.stringify({ usage: [other] }), nothing],
    ['not of no JSON', '"usage":{"prompt_tokens":1', nothing],
    ['none', '{}', nothing],
  ])('%s', async (_what, text, expected) => {
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

  const blanks = 'data: {"usage" : { "prompt_tokens" : 100 , "completion_tokens" : 3, "cached_tokens": 64}}\n\n'
  const much = 'x'.repeat(300_000)
  test.each<[string, readonly string[], typeof counted]>([
    ['without details', [event({ usage: other })], ofOther],
    ['after null in earlier events', [event({ usage: null }), event({ usage })], counted],
    [
      'in every event, of which the last counts',
      [event({ usage: { ...usage, completion_tokens: 1 } }), event({ usage })],
      counted,
    ],
    ['with blanks', [blanks], counted],
    ['with lines that end with CRLF', [event({ usage }).replaceAll('\n', '\r\n')], counted],
    ['in an event with much else', [event({ filling: much, usage, more: much })], counted],
    ['from the timings of llama-server', [event({ timings: { prompt_n: 36, cache_n: 64, predicted_n: 3 } })], counted],
    [
      'not from the text of the response',
      [event({ choices: [{ delta: { content: JSON.stringify({ usage }) } }] })],
      nothing,
    ],
    ['not from an invalid usage', [event({ usage: 'prompt_tokens' }), event({ usage: [1] })], nothing],
    ['not from invalid numbers', [event({ usage: { prompt_tokens: -1, completion_tokens: 'three' } })], nothing],
  ])('%s', async (_what, pieces, expected) => {
    expect(await countsOf({ pieces: [delta, ...pieces, done] })).toEqual(expected)
  })

  test('are read wherever the stream is cut', async () => {
    const last = event({ id: 'chatcmpl-1', choices: [], usage })

    expect(await wrongCuts(last, (pieces) => ({ pieces: [delta, ...pieces, done] }))).toEqual([])
  })

  test.each(['message_start', 'message_delta'])('are read wherever the %s of the Messages API is cut', async (name) => {
    const events = streamedResponse('/v1/messages', counted)
    const cut = events.findIndex((one) => one.startsWith(`event: ${name}\n`))
    const [before, after] = [events.slice(0, cut), events.slice(cut + 1)]
    const turn = (pieces: readonly string[]) => ({
      pieces: [...before, ...pieces, ...after],
      path: '/v1/messages' as const,
    })

    expect(await wrongCuts(events[cut] ?? '', turn)).toEqual([])
  })

  test.each<[string, object, object, typeof counted]>([
    ['told twice', { input_tokens: 100 }, { input_tokens: 36, cache_read_input_tokens: 64, output_tokens: 3 }, counted],
    [
      'told at the end',
      { output_tokens: 0 },
      { input_tokens: 36, cache_read_input_tokens: 64, output_tokens: 3 },
      counted,
    ],
    [
      'told at the start, and null at the end',
      { input_tokens: 99, cache_creation_input_tokens: 1 },
      { input_tokens: null, output_tokens: 3 },
      { ...counted, cached: 0 },
    ],
    ['never told, as by llama-server', {}, { output_tokens: 3 }, { prompt: 0, output: 3, cached: 0 }],
  ])('of the Messages API, the prompt’s: %s', async (_what, start, end, expected) => {
    const pieces = [
      messagesEvent('message_start', { message: { usage: start } }),
      messagesEvent('message_delta', { delta: {}, usage: end }),
      messagesEvent('message_stop', {}),
    ]

    expect(await countsOf({ pieces, path: '/v1/messages' })).toEqual(expected)
    expect(await countsOf({ pieces: [pieces.join('')], path: '/v1/messages' })).toEqual(expected)
  })
})

/** A ticket names the session's model, here with the character between two fields of the access log: 6 KB of JSON. */
test('a turn with the longest ticket counts', async () => {
  const body = { model: '\u001f'.repeat(1024), prompt: 'hello' }
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  expect((await use(stack, id, { body })).status).toBe(200)
  await untilTurns(stack, id, 2)
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
