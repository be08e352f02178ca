import { afterEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, type HttpResponse, post } from '../support/client.ts'
import { envoyStat } from '../support/metrics.ts'
import { openai } from '../support/openai-client.ts'
import type { PodReply } from '../support/pod-script.ts'
import {
  engineResponse,
  type InferencePath,
  inferenceBodies,
  inferencePaths,
  streamedResponse,
} from '../support/scripted-responses.ts'
import { cacheLine, create, createdId, errorOf, look, remove, untilTurns, use } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { pod, stack } = useScriptedStack({ store: 'redis', envoyWaits: 'as-configured' })
afterEach(async () => {
  stack.gateway().child.resume()
  if (!stack.gateway().child.isRunning()) await stack.restartGateway()
  await untilItWorks()
})

const body = inferenceBodies['/v1/completions']

const untilItWorks = () => eventually(() => createdId(stack, { body }))

const newSession = async (): Promise<string> => {
  const id = await untilItWorks()
  await untilTurns(stack, id, 1)
  return id
}

/** What Envoy counts of the calls by which it reports ended turns. */
const endsStat = (name: string): Promise<number> => envoyStat(stack, `cluster.gateway_ends.${name}`)

/**
 * A stream that the gateway knows and of which the pod has sent the first event; it waits for `finish`. `url` and
 * `headers`: the kind of turn.
 */
const streamedTurn = async (
  path: InferencePath,
  turn: { readonly url: string; readonly headers: Record<string, string> },
) => {
  const [first = '', ...others] = streamedResponse(path)
  let reply: PodReply | undefined
  pod.otherwise((_request, its) => {
    its.write(first)
    reply = its
  })
  // A busy machine may keep the gateway for longer than Envoy waits.
  const response = await eventually(async () => {
    const begun = await post(
      `${stack.url}${turn.url}`,
      { ...inferenceBodies[path], stream: true },
      { headers: turn.headers },
    )
    expect(begun.headers.get('x-session-id')).not.toBeNull()
    return begun
  })
  pod.otherwise(engineResponse())
  return {
    response,
    expected: [first, ...others].join(''),
    finish: () => {
      for (const piece of others) reply?.write(piece)
      reply?.end()
    },
  }
}

const useOf = (id: string) => ({ url: '/v1/completions', headers: { 'x-session-id': id } })

const downs = [
  { state: 'hangs', bringDown: async () => stack.gateway().child.pause() },
  { state: 'is dead', bringDown: async () => stack.gateway().child.kill() },
] as const

describe.each(downs)('a gateway that $state', ({ bringDown }) => {
  const expectRefused = (answer: HttpResponse): void => {
    expect(answer.status).toBe(503)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(errorOf(answer)).toMatchObject({ type: 'api_error', message: expect.stringMatching(/\w/) })
    expect(answer.headers.get('x-session-id')).toBeNull()
  }

  test('every request about a session gets a JSON error, and changes nothing', async () => {
    const id = await newSession()
    const requests = pod.requests().length

    await bringDown()
    const answers = [
      await create(stack, { body }),
      await look(stack, id),
      await call(`${stack.url}/v1/context`),
      await call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl: 5 } }),
      await remove(stack, id),
      // By now Envoy knows.
      await create(stack, { body }),
    ]

    answers.forEach(expectRefused)
    expect(pod.requests()).toHaveLength(requests)
  })

  test('inference of every API continues without its cache', async () => {
    const id = await newSession()
    await bringDown()

    for (const path of inferencePaths) {
      const requests = pod.requests().length
      const answers = [
        await use(stack, id, { path, body: inferenceBodies[path] }),
        await use(stack, id, { path, body: { ...inferenceBodies[path], stream: true } }),
        await create(stack, { path, body: inferenceBodies[path], headers: { 'x-session-ttl': '60' } }),
        await call(`${stack.url}${path}`, { body: inferenceBodies[path] }),
      ]

      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      expect(answers.map(({ headers }) => headers.get('x-session-id'))).toEqual([null, null, null, null])
      expect(answers.map(cacheLine)).toEqual([null, null, null, null])
      const received = pod.requests().slice(requests)
      expect(received.map((request) => JSON.parse(request.body))).toEqual([
        inferenceBodies[path],
        { ...inferenceBodies[path], stream: true },
        inferenceBodies[path],
        inferenceBodies[path],
      ])
    }
  })

  test('does not cut a stream: of a turn, of a turn with a TTL, of a create', async () => {
    const streams = [
      await streamedTurn('/v1/completions', useOf(await newSession())),
      await streamedTurn('/v1/chat/completions', { url: '/v1/chat/completions', headers: { 'x-session-ttl': '60' } }),
      await streamedTurn('/v1/responses', { url: '/v1/context', headers: {} }),
    ]
    await bringDown()

    for (const stream of streams) stream.finish()
    expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200])
    for (const { response, expected } of streams) expect(await response.text()).toBe(expected)
  })
})

describe('a gateway that hung counts the turns that ended meanwhile', () => {
  test.each([
    { when: 'before Envoy has noticed', untilThen: async () => undefined },
    {
      when: 'after Envoy has noticed',
      untilThen: () =>
        eventually(async () => expect(await envoyStat(stack, 'cluster.gateway.membership_healthy')).toBe(0)),
    },
  ])('$when', async ({ untilThen }) => {
    const id = await newSession()
    const turn = await streamedTurn('/v1/completions', useOf(id))

    stack.gateway().child.pause()
    await untilThen()
    turn.finish()
    await turn.response.text()
    await eventually(async () => expect(await endsStat('upstream_rq_active')).toBeGreaterThan(0))
    stack.gateway().child.resume()

    await untilTurns(stack, id, 2)
  })
})

test('a gateway that starts anew counts the turns that ended while there was none, and goes on with them', async () => {
  const ids = await Promise.all([newSession(), newSession()])
  const turns = [await streamedTurn('/v1/completions', useOf(ids[0]))]
  turns.push(await streamedTurn('/v1/completions', useOf(ids[1])))
  const retries = await endsStat('upstream_rq_retry')

  await stack.gateway().child.kill()
  for (const turn of turns) {
    turn.finish()
    await turn.response.text()
  }
  await eventually(async () => expect(await endsStat('upstream_rq_retry')).toBeGreaterThan(retries))
  await stack.restartGateway()

  await Promise.all(ids.map((id) => untilTurns(stack, id, 2)))
  await eventually(async () => expect((await use(stack, ids[0], { body })).headers.get('x-session-id')).toBe(ids[0]))
})

test('the SDK goes on by itself after a refusal that passes', async () => {
  await stack.gateway().child.kill()
  const client = openai(stack.url, { maxRetries: 8 })

  const creating = client.post<{ object: string }>('/context', { body }).asResponse()
  await stack.restartGateway()

  const response = await creating
  expect(response.status).toBe(200)
  expect(response.headers.get('x-session-id')).toMatch(/^ctx_/)
})
