import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { post } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply } from '../support/pod-script.ts'
import { event } from '../support/scripted-responses.ts'
import { createdId, untilTurns, use } from '../support/sessions.ts'
import type { Stack, StackOptions } from '../support/stack.ts'
import { type ScriptedStack, useScriptedStack } from '../support/use-stack.ts'
import { ask, cacheHeader, chatStream, numberedResponses, question } from './support.ts'

const useNumberedStack = (options: Pick<StackOptions, 'envoyWaits'> = {}): ScriptedStack => {
  const scripted = useScriptedStack({
    ...options,
    store: 'redis',
    env: {
      CTX_RESPONSE_CACHE_MODELS: 'scripted',
      CTX_RESPONSE_CACHE_MAX_BYTES: '1000000',
      CTX_RESPONSE_CACHE_MAX_ENTRY_BYTES: '50000',
    },
  })
  beforeAll(() => scripted.pod.otherwise(numberedResponses()))
  return scripted
}
const patient = useNumberedStack()
const { pod, stack } = patient
const impatient = useNumberedStack({ envoyWaits: 'as-configured' })

let seed = 0
const fresh = (part: object = {}): object => {
  seed += 1
  return { ...question, seed, stream: true, ...part }
}

const openStreams = (): Promise<number> => metric(stack, 'ext_proc_streams_active')

const untilItWorks = (on: Stack) =>
  eventually(async () => {
    expect(cacheHeader(await ask(on, { body: fresh() }))).toBe('miss')
    await createdId(on, { body: question })
  })

/** A stream of which the pod has sent the first event and that waits for the others. */
const begun = async (body: object, headers: Record<string, string> = {}, { pod, stack } = patient) => {
  const [first = '', ...others] = chatStream('chatcmpl-slow', false)
  let reply: PodReply | undefined
  pod.next((_request, its) => {
    its.write(first)
    reply = its
  })
  const client = new AbortController()
  const response = await post(`${stack.url}/v1/chat/completions`, body, {
    headers: { 'x-response-cache': 'on', ...headers },
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

type Begun = Awaited<ReturnType<typeof begun>>

describe('a stream', () => {
  test('is replayed as a stream, to the byte', async () => {
    const body = fresh()
    const answers = [await ask(stack, { body }), await ask(stack, { body })]
    expect(answers.map(cacheHeader)).toEqual(['miss', 'hit'])
    expect(answers[1]?.text).toBe(answers[0]?.text)
    expect(answers[1]?.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
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

  test.each<[string, (stream: Begun) => void]>([
    ['the engine cuts it', ({ reply }) => reply?.reset()],
    ['the engine ends it without its last event', ({ reply }) => reply?.end()],
    ['its client disconnects', ({ leave }) => leave()],
  ])('is not kept when %s', async (_name, end) => {
    const body = fresh()
    const stream = await begun(body)
    end(stream)
    await stream.rest().catch(() => undefined)
    await eventually(async () => expect(await openStreams()).toBe(0))
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })

  test('that is too long to be kept arrives whole, and its rest does not cross to the gateway', async () => {
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
    await eventually(async () => expect(await openStreams()).toBe(0))
    expect(cacheHeader(await ask(stack, { body }))).toBe('miss')
  })
})

test('a gateway that dies in the middle of a stream neither cuts nor delays it', async () => {
  const stream = await begun(fresh())
  expect(cacheHeader(stream.response)).toBe('miss')
  expect(await stream.read()).toBe(stream.first)
  await eventually(async () => expect(await openStreams()).toBe(1))

  await stack.gateway().child.kill()
  for (const piece of stream.others) stream.reply?.write(piece)
  stream.reply?.end()

  expect(await stream.rest()).toBe(stream.others.join(''))
  await stack.restartGateway()
  await untilItWorks(stack)
})

test.each([
  ['without a session', async (): Promise<Record<string, string>> => ({})],
  [
    'of a session',
    async (on: Stack) => ({ 'x-session-id': await eventually(() => createdId(on, { body: question })) }),
  ],
])('a gateway that hangs does not cut a fast stream %s', async (_name, headersOf) => {
  const stream = await begun(fresh(), await headersOf(impatient.stack), impatient)
  expect(await stream.read()).toBe(stream.first)

  impatient.stack.gateway().child.pause()
  // Each piece comes long before Envoy's message timeout for the one before.
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
  impatient.stack.gateway().child.resume()
  await untilItWorks(impatient.stack)
})

test('a turn whose gateway dies in the middle of its stream is counted by the next gateway', async () => {
  const id = await eventually(() => createdId(stack, { body: question }))
  await untilTurns(stack, id, 1)
  const stream = await begun(fresh(), { 'x-session-id': id })
  await stack.gateway().child.kill()
  await stack.restartGateway()
  for (const piece of stream.others) stream.reply?.write(piece)
  stream.reply?.end()
  expect(await stream.rest()).toBe(stream.first + stream.others.join(''))
  await untilTurns(stack, id, 2)
  expect((await use(stack, id, { path: '/v1/chat/completions', body: question })).status).toBe(200)
})
