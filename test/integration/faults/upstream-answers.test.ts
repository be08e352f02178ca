import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { post } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import type { PodReply, PodScript } from '../support/pod-script.ts'
import { event, type InferencePath, inferenceBodies, streamedResponse } from '../support/scripted-responses.ts'
import { createdId, look, untilTurns, view } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** A session of one turn, to which no test may add another. */
let session: string

const { pod, stack } = useScriptedStack({ store: 'redis', env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '50' } })
beforeAll(async () => {
  session = await createdId(stack, { body: inferenceBodies['/v1/completions'] })
  await untilTurns(stack, session, 1)
})

/** A way to send a turn for each API: together they are all kinds of turns. */
const routes: readonly Route[] = [
  { path: '/v1/completions', url: '/v1/completions', headers: () => ({ 'x-session-id': session }) },
  { path: '/v1/chat/completions', url: '/v1/chat/completions', headers: () => ({ 'x-session-ttl': '60' }) },
  { path: '/v1/responses', url: '/v1/context', headers: () => ({}) },
  { path: '/v1/messages', url: '/v1/messages', headers: () => ({ 'x-session-ttl': '60' }) },
]

interface Route {
  readonly path: InferencePath
  readonly url: string
  readonly headers: () => Record<string, string>
}

/** Another one of these ways for each row of a table: what Envoy does with such an answer does not depend on the API. */
const oneRoute = (row: number): readonly Route[] => routes.filter((_route, index) => index === row % routes.length)

/** Turns that ended well, turns that ended, and sessions that exist. */
const counts = async () => ({
  completed: await metric(stack, 'turns_total', { outcome: 'completed' }),
  all: await metric(stack, 'turns_total'),
  sessions: await metric(stack, 'sessions_active'),
})

/** A turn that broke off makes the gateway leave the pod alone until its next health check. */
const untilReady = () =>
  eventually(async () => expect((await fetch(`${stack.gateway().adminUrl}/readyz`)).status).toBe(200))

beforeEach(untilReady)

/** Sends a turn that must not count, waits until it has ended, and returns what the client received. */
const failingTurn = async (route: Route, stream: boolean) => {
  await untilReady()
  const before = await counts()

  const outcome = await attempt(`${stack.url}${route.url}`, route.headers(), { ...inferenceBodies[route.path], stream })

  await eventually(async () => expect(await metric(stack, 'turns_total')).toBe(before.all + 1))
  await eventually(async () => expect(await counts()).toEqual({ ...before, all: before.all + 1 }))
  expect(await view(stack, session)).toMatchObject({ turns: 1 })
  return outcome
}

interface Received {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly isWhole: boolean
}

/** Reads as much of an answer as comes. */
const attempt = async (url: string, headers: Record<string, string>, body: unknown): Promise<Received> => {
  const response = await post(url, body, { headers })
  let text = ''
  let isWhole = true
  try {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
  } catch {
    isWhole = false
  }
  return { status: response.status, headers: response.headers, text, isWhole }
}

const refusals = [
  { status: 400, headers: {}, body: { error: { message: 'context too long', type: 'BadRequestError', code: 400 } } },
  { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: { detail: 'no' } },
  { status: 404, headers: {}, body: { error: { message: 'no such model', code: 'model_not_found' } } },
  { status: 422, headers: {}, body: { detail: [{ loc: ['body', 'prompt'] }] } },
  { status: 429, headers: { 'retry-after': '7', 'x-ratelimit-remaining-tokens': '0' }, body: { error: {} } },
  { status: 500, headers: {}, body: { error: { message: 'CUDA out of memory' } } },
  { status: 503, headers: { 'retry-after': '3' }, body: { error: { message: 'loading' } } },
  { status: 529, headers: { 'x-should-retry': 'true' }, body: { error: { message: 'overloaded' } } },
].map((row, index) => ({ ...row, tried: row.status === 500 ? routes : oneRoute(index) }))

describe.each(refusals)('an engine that responds with $status', ({ status, headers, body, tried }) => {
  test.each(tried)('is passed on unchanged, and nothing is kept: $path by $url', async (route) => {
    const answered = pod.requests().length
    pod.next((_request, reply) => reply.json(status, body, headers))

    const outcome = await failingTurn(route, false)

    expect(pod.requests()).toHaveLength(answered + 1)
    expect(outcome).toMatchObject({ status, text: JSON.stringify(body), isWhole: true })
    expect(Object.fromEntries(outcome.headers)).toMatchObject({ ...headers, 'content-type': 'application/json' })
    expect(outcome.headers.get('x-session-id')).toBeNull()
    expect(outcome.headers.get('x-context-cache')).toBeNull()
  })
})

test.each(oneRoute(0))('an error that is no JSON is passed on unchanged: $path by $url', async (route) => {
  pod.next((_request, { response }) => {
    response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>')
  })

  const outcome = await failingTurn(route, false)

  expect(outcome).toMatchObject({ status: 502, text: '<h1>Bad Gateway</h1>' })
  expect(outcome.headers.get('content-type')).toBe('text/html')
})

/** Pieces of a stream, and how it stops. */
interface BrokenStream {
  readonly what: string
  readonly pieces: (path: InferencePath) => readonly string[]
  readonly stops: (reply: PodReply) => void
  readonly isWhole: boolean
  /** The turns that get it. */
  readonly tried: readonly Route[]
}

const withoutEnd = (path: InferencePath): readonly string[] => streamedResponse(path).slice(0, -1)
const ends = (reply: PodReply): void => reply.end()

/** What an engine sends last, in place of the end of its stream. */
const lastWords: readonly (readonly [string, ...string[]])[] = [
  ['ends without its last event'],
  ['reports an error', event({ error: { message: 'engine died', code: 500 } }), event('[DONE]')],
  ['reports an error without a blank after the colon', 'data:{"error":{"message":"engine died"}}\n\n', event('[DONE]')],
  ['reports an error by an event of that name', event({ type: 'error', message: 'engine died' }, 'error')],
  ['reports an error in two pieces', 'data: {"er', 'ror":{"message":"engine died"}}\n\n', event('[DONE]')],
  ['says that the response failed', event({ type: 'response.failed', response: {} }, 'response.failed')],
  ['quotes the end in its text', event({ text: 'data: [DONE]\n\nevent: response.completed' })],
]

const brokenStreams: readonly BrokenStream[] = [
  ...lastWords.map(([what, ...last], index) => ({
    what,
    pieces: (path: InferencePath) => [...withoutEnd(path), ...last],
    stops: ends,
    isWhole: true,
    // Each API has an end of its own.
    tried: last.length === 0 ? routes : oneRoute(index),
  })),
  {
    what: 'ends without any event',
    pieces: () => [': keep-alive\n\n'],
    stops: ends,
    isWhole: true,
    tried: oneRoute(0),
  },
  { what: 'is reset', pieces: withoutEnd, stops: (reply) => reply.reset(), isWhole: false, tried: routes },
]

const streams =
  ({ pieces, stops }: Pick<BrokenStream, 'pieces' | 'stops'>): PodScript =>
  async (request, reply) => {
    for (const piece of pieces(request.path as InferencePath)) {
      reply.write(piece)
      // One piece at a time, so that they arrive apart.
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => expect(reply.response.writableLength).toBe(0))
    stops(reply)
  }

describe.each(brokenStreams)('a stream that $what', (broken) => {
  test.each(broken.tried)('is passed on unchanged, and does not count: $path by $url', async (route) => {
    pod.next(streams(broken))

    const outcome = await failingTurn(route, true)

    expect(outcome).toMatchObject({ status: 200, text: broken.pieces(route.path).join(''), isWhole: broken.isWhole })
    const id = outcome.headers.get('x-session-id') ?? ''
    expect((await look(stack, id)).status).toBe(id === session ? 200 : 404)
  })
})

describe('a response that ends before its content-length', () => {
  test.each(routes)('is cut for the client too, and does not count: $path by $url', async (route) => {
    pod.next(async (_request, reply) => {
      reply.response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
      reply.response.write('{"choices":[')
      await eventually(() => expect(reply.response.writableLength).toBe(0))
      reply.reset()
    })

    const outcome = await failingTurn(route, false)

    expect(outcome).toMatchObject({ status: 200, isWhole: false })
    const id = outcome.headers.get('x-session-id') ?? ''
    expect((await look(stack, id)).status).toBe(id === session ? 200 : 404)
  })
})

const untilCounted = ({ headers }: Received) => untilTurns(stack, headers.get('x-session-id') ?? '', 1)

describe('a stream that is whole counts', () => {
  test.each([
    {
      what: 'with an answer that was cut at its token limit',
      path: '/v1/responses' as const,
      pieces: [event({ type: 'response.incomplete', response: { status: 'incomplete' } }, 'response.incomplete')],
    },
    {
      what: 'with its end in two pieces',
      path: '/v1/completions' as const,
      pieces: [...withoutEnd('/v1/completions'), 'data: [DO', 'NE]\n\n'],
    },
    {
      what: 'without a blank after its colons',
      path: '/v1/completions' as const,
      pieces: streamedResponse('/v1/completions').map((piece) => piece.replace('data: ', 'data:')),
    },
    {
      what: 'with CRLF at the ends of its lines',
      path: '/v1/completions' as const,
      pieces: streamedResponse('/v1/completions').map((piece) => piece.replaceAll('\n', '\r\n')),
    },
    {
      what: 'that speaks of errors in its text',
      path: '/v1/chat/completions' as const,
      pieces: [event({ choices: [{ delta: { content: '\ndata: {"error": 1}\nevent: error' } }] }), event('[DONE]')],
    },
  ])('$what', async ({ path, pieces }) => {
    pod.next(streams({ pieces: () => pieces, stops: ends }))

    await untilReady()

    const answer = await attempt(
      `${stack.url}${path}`,
      { 'x-session-ttl': '60' },
      { ...inferenceBodies[path], stream: true },
    )

    expect(answer).toMatchObject({ status: 200, text: pieces.join('') })
    await untilCounted(answer)
  })
})
