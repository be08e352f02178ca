import { describe, expect, jest, test } from '@jest/globals'
import { inferencePaths, wholeAnswer } from '../support/scripted-answers.ts'
import { useScriptedStack } from '../support/scripted-stack.ts'
import { counted, inPieces, nothing, tokensOfFirstTurn, usage } from './counted-answers.ts'
import { create } from './support.ts'

jest.setTimeout(60_000)

const bench = useScriptedStack()

/** Creates a session with an answer of these pieces, and tells what was counted of it. */
const countsOf = async (pieces: readonly string[], headers: Readonly<Record<string, string | number>> = {}) => {
  bench.pod.next(inPieces(pieces, { 'content-type': 'application/json', ...headers }))
  const body = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] }
  const answer = await create(bench.stack, { path: '/v1/chat/completions', body, headers: { 'x-session-ttl': '600' } })
  expect(answer.text === pieces.join('')).toBe(true)
  return tokensOfFirstTurn(bench.stack, answer)
}

const other = { prompt_tokens: 7, completion_tokens: 7 }
const long = Array.from({ length: 40_000 }, (_, index) => ({ [`${index}`]: '{"}' }))

describe('the token counts of an answer that is one text', () => {
  test.each(inferencePaths)('are those of its usage: %s', async (path) => {
    expect(await countsOf([JSON.stringify(wholeAnswer(path, counted))])).toEqual(counted)
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
    expect(await countsOf([text])).toEqual(expected)
    expect(await countsOf([text], { 'content-length': Buffer.byteLength(text) })).toEqual(expected)
  })

  test.each([
    ['application/json; charset=utf-8', counted],
    ['application/jsonl', nothing],
    ['text/plain', nothing],
  ])('with the type %s', async (type, expected) => {
    expect(await countsOf([JSON.stringify({ usage })], { 'content-type': type })).toEqual(expected)
  })

  test('are read wherever the answer is cut', async () => {
    const text = JSON.stringify({ id: 'x', tools: [{ usage: other }], usage })

    const wrong: unknown[] = []
    for (let cut = 1; cut < text.length; cut += 1) {
      const tokens = await countsOf([text.slice(0, cut), text.slice(cut)])
      if (JSON.stringify(tokens) !== JSON.stringify(counted)) wrong.push({ cut, tokens })
    }

    expect(wrong).toEqual([])
  })

  test('are read from an answer that exceeds every buffer', async () => {
    const pieces = [
      '{"text":"',
      ...Array.from({ length: 20 }, () => 'x'.repeat(1_048_576)),
      `","usage":${JSON.stringify(usage)}}`,
    ]
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)

    expect(await countsOf(pieces, { 'content-length': bytes })).toEqual(counted)
  })
})
