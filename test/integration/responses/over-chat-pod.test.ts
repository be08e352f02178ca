// What an engine without /v1/responses may answer, by a pod that answers it.
import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { eventually } from '../../support/eventually.ts'
import { openai } from '../support/openai-client.ts'
import type { PodReply, PodScript } from '../support/pod-script.ts'
import { event } from '../support/scripted-responses.ts'
import { useScriptedStack } from '../support/use-stack.ts'
import { type Input, tools } from './support.ts'

const chunk = (delta: object, finish_reason: string | null = null): string =>
  event({ id: 'chatcmpl-1', created: 7, model: 'm', choices: [{ index: 0, delta, finish_reason }] })
const usage = { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 8 } }
const usageChunk = event({ id: 'chatcmpl-1', choices: [], usage })
const done = event('[DONE]')

const streams =
  (...pieces: readonly string[]): PodScript =>
  (_request, reply) => {
    for (const piece of pieces) reply.write(piece)
    reply.end()
  }

/** What is added to the call of this place. */
const called = (index: number, added: object): string => chunk({ tool_calls: [{ index, ...added }] })
const argumentsOf = (index: number, text: string): string => called(index, { function: { arguments: text } })
const begins = (index: number, id: string): string =>
  called(index, { id, type: 'function', function: { name: 'weather', arguments: '' } })

describe.each(['lua', 'picker'] as const)('in the wiring %s', (wiring) => {
  const env = { CTX_RESPONSES_STORE: 'true', CTX_ENGINES_RESPONSES_API: 'chat' }
  const { stack, pod } = useScriptedStack({ wiring, env })

  const given = { model: 'm', input: 'hello' }
  /** Messages of the last request. */
  const seen = (): unknown => JSON.parse(pod.requests().at(-1)?.body ?? '').messages
  const user = (content: string) => ({ role: 'user', content })

  test('parallel calls come in pieces, and their outputs follow them in the next turn', async () => {
    pod.next(
      streams(
        chunk({ role: 'assistant', content: '' }),
        chunk({ content: 'Let me ' }),
        chunk({ content: 'see.' }),
        begins(0, 'call_a'),
        argumentsOf(0, '{"city"'),
        argumentsOf(0, ':"Oslo"}'),
        begins(1, 'call_b'),
        argumentsOf(1, '{"city":'),
        argumentsOf(1, '"Paris"}'),
        chunk({}, 'tool_calls'),
        usageChunk,
        done,
      ),
    )
    const streamed = openai(stack.url).responses.stream({ ...given, tools })
    const deltas: string[] = []
    streamed.on('response.function_call_arguments.delta', ({ output_index, delta }) => {
      deltas.push(`${output_index} ${delta}`)
    })
    const { id, output, output_text } = await streamed.finalResponse()
    expect(deltas).toEqual(['1 {"city"', '1 :"Oslo"}', '2 {"city":', '2 "Paris"}'])
    expect([output_text, ...output.slice(1)]).toMatchObject([
      'Let me see.',
      { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{"city":"Oslo"}' },
      { type: 'function_call', call_id: 'call_b', name: 'weather', arguments: '{"city":"Paris"}' },
    ])

    const outputs: Input = ['call_b', 'call_a'].map((call_id) => ({
      type: 'function_call_output',
      call_id,
      output: `of ${call_id}`,
    }))
    await openai(stack.url).responses.create({ ...given, tools, previous_response_id: id, input: outputs })
    const call = (id: string, city: string) => ({
      id,
      type: 'function',
      function: { name: 'weather', arguments: `{"city":"${city}"}` },
    })
    expect(seen()).toEqual([
      user('hello'),
      { role: 'assistant', content: 'Let me see.', tool_calls: [call('call_a', 'Oslo'), call('call_b', 'Paris')] },
      { role: 'tool', tool_call_id: 'call_b', content: 'of call_b' },
      { role: 'tool', tool_call_id: 'call_a', content: 'of call_a' },
    ])
  })

  test.each<[string, PodScript, string, object]>([
    [
      'that refuses',
      streams(chunk({ refusal: 'I will ' }), chunk({ refusal: 'not.' }, 'stop'), usageChunk, done),
      'I will not.',
      { status: 'completed', output: [{ content: [{ type: 'refusal', refusal: 'I will not.' }] }] },
    ],
    [
      'that reached its limit',
      streams(chunk({ content: 'one ' }), chunk({ content: 'two' }, 'length'), usageChunk, done),
      'one two',
      {
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ status: 'incomplete', content: [{ type: 'output_text', text: 'one two' }] }],
      },
    ],
    [
      'without usage',
      streams(chunk({ content: 'one two' }, 'stop'), done),
      'one two',
      { status: 'completed', usage: null },
    ],
  ])('an answer %s is kept as it is, and continued', async (_name, script, text, expected) => {
    pod.next(script)
    const { id } = await openai(stack.url).responses.stream(given).finalResponse()
    expect(await openai(stack.url).responses.retrieve(id)).toMatchObject({ ...expected, store: true })
    await openai(stack.url).responses.create({ ...given, previous_response_id: id, input: 'and?' })
    expect(seen()).toEqual([user('hello'), { role: 'assistant', content: text }, user('and?')])
  })

  /** A conversation whose next turn is answered at once, from what it had before. */
  const expectNothingKept = async (conversation: string): Promise<void> => {
    expect((await openai(stack.url).conversations.items.list(conversation)).data).toEqual([])
    await eventually(() => openai(stack.url).responses.create({ ...given, conversation, input: 'again' }))
    expect(seen()).toEqual([user('again')])
  }

  /**
   * Types of the events of a turn, `cut` behind them where its connection breaks, and the response's id. `end` is called
   * when the client has the first half of the answer.
   */
  const takeHalf = async (conversation: string, end: (reply: PodReply) => unknown) => {
    let reply: PodReply | undefined
    pod.next((_request, its) => {
      for (const piece of half) its.write(piece)
      reply = its
    })
    const types: (string | undefined)[] = []
    let id = ''
    try {
      for await (const event of await openai(stack.url).responses.create({ ...given, conversation, stream: true })) {
        types.push(event.type)
        if (event.type === 'response.created') id = event.response.id
        if (event.type === 'response.function_call_arguments.delta' && reply !== undefined) await end(reply)
      }
    } catch {
      types.push('cut')
    }
    return { id, types }
  }
  const half = [chunk({ content: 'one ' }), begins(0, 'call_a'), argumentsOf(0, '{"city"')]

  test.each<[string, (reply: PodReply) => void, string]>([
    ['its connection breaks', (reply) => reply.reset(), 'cut'],
    ['it ends without its last event', (reply) => reply.end(), 'response.failed'],
    [
      'the engine reports an error',
      (reply) => {
        reply.write(event({ error: { message: 'out of memory', code: 500 } }) + done)
        reply.end()
      },
      'response.failed',
    ],
  ])('nothing is kept of a stream when %s', async (_name, end, last) => {
    const conversation = (await openai(stack.url).conversations.create()).id
    const { id, types } = await takeHalf(conversation, end)
    expect(types.slice(types.indexOf('response.function_call_arguments.delta') + 1)).toEqual([last])
    await expect(openai(stack.url).responses.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expectNothingKept(conversation)
  })

  test.each([400, 500])('an engine’s error %i comes back, and its conversation stays free', async (status) => {
    const conversation = (await openai(stack.url).conversations.create()).id
    const error = { message: 'The prompt is too long.', type: 'BadRequestError', code: status }
    pod.next((_request, reply) => reply.json(status, { error }))
    const asked = openai(stack.url).responses.create({ ...given, conversation })
    await expect(asked).rejects.toMatchObject({ status, error })
    await expectNothingKept(conversation)
  })

  test('a whole answer that is cut or no chat’s is a response that failed, and is not kept', async () => {
    const conversation = (await openai(stack.url).conversations.create()).id
    pod.next((_request, reply) => {
      reply.response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[{"message":{"content":"on')
    })
    const { id, ...told } = await openai(stack.url).responses.create({ ...given, conversation })
    expect(told).toMatchObject({
      status: 'failed',
      store: false,
      error: { code: 'server_error', message: 'The answer of the engine ended early.' },
    })
    await expect(openai(stack.url).responses.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    await expectNothingKept(conversation)
  })

  test('a gateway that is killed in the middle of a stream leaves an answer without an end', async () => {
    const conversation = (await openai(stack.url).conversations.create()).id
    const { types } = await takeHalf(conversation, async (reply) => {
      await stack.gateway().child.kill()
      reply.write(chunk({}, 'tool_calls') + done)
      reply.end()
    })
    // Where the gateway is no endpoint picker, Envoy goes on without it, and the rest is the engine's.
    const rest = wiring === 'lua' ? undefined : 'cut'
    expect(types.slice(types.indexOf('response.function_call_arguments.delta') + 1)).toEqual([rest])
  })
})
