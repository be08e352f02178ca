import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { createdId, metric, use, view } from '../faults/support.ts'
import { openai } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { event, streamedAnswer } from '../support/scripted-answers.ts'
import { type PodReply, type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { ask, cacheHeader, chatStream, numberedAnswers, question } from './support.ts'

jest.setTimeout(60_000)

let pod: ScriptedPod
let stack: Stack

beforeAll(async () => {
  pod = await startScriptedPod()
  pod.otherwise(numberedAnswers())
  stack = await startStack({
    store: 'redis',
    pods: async () => [pod],
    env: {
      CONNECTOR: 'none',
      CTX_RESPONSE_CACHE_MODELS: 'scripted',
      CTX_RESPONSE_CACHE_MAX_BYTES: '1000000',
      CTX_RESPONSE_CACHE_MAX_ENTRY_BYTES: '50000',
    },
  })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  await pod?.stop()
}, 30_000)

let seed = 0
const fresh = (part: object = {}): object => {
  seed += 1
  return { ...question, seed, stream: true, ...part }
}

const openStreams = (): Promise<number> => metric(stack, 'ext_proc_streams_active')

const untilItWorks = () =>
  eventually(async () => {
    expect(cacheHeader(await ask(stack, { body: fresh() }))).toBe('miss')
    await createdId(stack, { body: question })
  })

/** A stream of which the pod has sent the first event and that waits for the others. */
const begun = async (body: object, headers: Record<string, string> = {}) => {
  const [first = '', ...others] = chatStream('chatcmpl-slow', false)
  let reply: PodReply | undefined
  pod.next((_request, its) => {
    its.write(first)
    reply = its
  })
  const client = new AbortController()
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer test-key',
      'content-type': 'application/json',
      'x-response-cache': 'on',
      ...headers,
    },
    body: JSON.stringify(body),
    signal: client.signal,
  })
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  const read = async (): Promise<string> => decoder.decode((await reader?.read())?.value)
  return {
    response,
    first,
    others,
    reply,
    /** The next bytes that arrive. */
    read,
    rest: async (): Promise<string> => {
      let text = ''
      for (;;) {
        const piece = await read()
        if (piece === '') return text
        text += piece
      }
    },
    leave: () => client.abort(),
  }
}

describe('a stream', () => {
  test('is sent again as a stream, to the byte', async () => {
    const body = fresh()
    const answers = [await ask(stack, { body }), await ask(stack, { body })]
    expect(answers.map(cacheHeader)).toEqual(['miss', 'hit'])
    expect(answers[1]?.text).toBe(answers[0]?.text)
    expect(answers[1]?.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  })

  test('carries usage when it is sent again to whoever asks for it, and not otherwise', async () => {
    const plain = fresh()
    const counted = { ...plain, stream_options: { include_usage: true } }
    for (const body of [plain, counted]) await ask(stack, { body })
    const answers = [await ask(stack, { body: plain }), await ask(stack, { body: counted })]
    expect(answers.map(cacheHeader)).toEqual(['hit', 'hit'])
    expect(answers.map(({ text }) => text.includes('"usage"'))).toEqual([false, true])
  })

  test('is read by the SDK whether it was computed or sent again', async () => {
    const client = openai(stack.url, { headers: { 'x-response-cache': 'on' } })
    const said: string[] = []
    for (let time = 0; time < 2; time += 1) {
      const stream = await client.chat.completions.create({
        model: 'scripted',
        messages: [{ role: 'user', content: 'by the SDK' }],
        temperature: 0,
        stream: true,
      })
      let text = ''
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
      said.push(text)
    }
    expect(said).toEqual(['one two', 'one two'])
    expect(pod.requests().filter(({ body }) => body.includes('by the SDK'))).toHaveLength(1)
  })

  test('of the responses API is kept when its last event was seen', async () => {
    const body = { model: 'scripted', input: 'hello', temperature: 0, stream: true }
    pod.next((_request, reply) => {
      for (const piece of streamedAnswer('/v1/responses')) reply.write(piece)
      reply.end()
    })
    const answers = [
      await ask(stack, { path: '/v1/responses', body }),
      await ask(stack, { path: '/v1/responses', body }),
    ]
    expect(answers.map(cacheHeader)).toEqual(['miss', 'hit'])
    expect(answers[1]?.text).toBe(streamedAnswer('/v1/responses').join(''))
  })

  test('is never held back: each event arrives before the next is sent', async () => {
    const stream = await begun(fresh())
    let got = await stream.read()
    expect(got).toBe(stream.first)
    for (const piece of stream.others) {
      stream.reply?.write(piece)
      got = await stream.read()
      expect(got).toBe(piece)
    }
    stream.reply?.end()
    expect(await stream.rest()).toBe('')
  })

  test.each<[string, (reply: PodReply) => void]>([
    ['has no last event', (reply) => reply.end()],
    [
      'tells of an error',
      (reply) => {
        reply.write(event({ error: { message: 'out of memory' } }))
        reply.write(event('[DONE]'))
        reply.end()
      },
    ],
    ['is cut', (reply) => reply.reset()],
  ])('is not kept when it %s', async (_name, end) => {
    const body = fresh()
    const stream = await begun(body)
    if (stream.reply !== undefined) end(stream.reply)
    await stream.rest().catch(() => undefined)
    await eventually(async () => expect(await openStreams()).toBe(0))
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })

  test('is not kept when its client left', async () => {
    const body = fresh()
    const stream = await begun(body)
    stream.leave()
    await eventually(async () => expect(await openStreams()).toBe(0))
    expect(await stream.reply?.finished).toBe(false)
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })

  test('that is too long to be kept arrives whole, and the rest of it does not cross', async () => {
    const pieces = Array.from({ length: 200 }, (_, index) =>
      event({ choices: [{ delta: { content: `${index} `.repeat(500) } }] }),
    )
    pod.next(async (_request, reply) => {
      for (const piece of [...pieces, event('[DONE]')]) {
        reply.write(piece)
        await new Promise(setImmediate)
      }
      reply.end()
    })
    const body = fresh()
    const answer = await ask(stack, { body })
    expect(answer.text).toBe([...pieces, event('[DONE]')].join(''))
    expect(await openStreams()).toBe(0)
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })
})

describe.each([
  ['without a session', async (): Promise<Record<string, string>> => ({})],
  ['of a session', async () => ({ 'x-session-id': await createdId(stack, { body: question }) })],
])('a gateway that ends in the middle of a stream %s', (_name, headersOf) => {
  test('does not cut it, or hold it back', async () => {
    const headers = await headersOf()
    const stream = await begun(fresh(), headers)
    expect(cacheHeader(stream.response)).toBe('miss')
    expect(await stream.read()).toBe(stream.first)
    expect(await openStreams()).toBe(1)

    await stack.gateway().child.kill()
    for (const piece of stream.others) stream.reply?.write(piece)
    stream.reply?.end()

    expect(await stream.rest()).toBe(stream.others.join(''))
    await stack.restartGateway()
    await untilItWorks()
  })

  test('and one that hangs lets it go on, however fast it comes', async () => {
    const stream = await begun(fresh(), await headersOf())
    expect(await stream.read()).toBe(stream.first)

    stack.gateway().child.pause()
    // Each piece comes long before Envoy would have waited enough for the gateway's word on the one before.
    const written: string[] = []
    const isWriting = new AbortController()
    const writing = (async () => {
      while (!isWriting.signal.aborted) {
        written.push(event({ choices: [{ delta: { content: String(written.length) }, finish_reason: null }] }))
        stream.reply?.write(written.at(-1) ?? '')
        await delay(20)
      }
    })()
    const next = await stream.read()
    isWriting.abort()
    await writing
    stream.reply?.end()

    expect(next + (await stream.rest())).toBe(written.join(''))
    stack.gateway().child.resume()
    await untilItWorks()
  })
})

test('a turn that the gateway saw half of is counted by the next one', async () => {
  const id = await createdId(stack, { body: question })
  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 1 }))
  const stream = await begun(fresh(), { 'x-session-id': id })
  await stack.gateway().child.kill()
  await stack.restartGateway()
  for (const piece of stream.others) stream.reply?.write(piece)
  stream.reply?.end()
  await stream.rest()
  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2 }))
  expect((await use(stack, id, { path: '/v1/chat/completions', body: question })).status).toBe(200)
})
