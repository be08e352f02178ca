import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { eventually } from '../support/eventually.ts'
import { inferencePaths, wholeAnswer } from '../support/scripted-answers.ts'
import { type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { create, createdId, errorOf, metric, view } from './support.ts'

let pod: ScriptedPod
let stack: Stack

beforeAll(async () => {
  pod = await startScriptedPod()
  stack = await startStack({ store: 'redis', pods: async () => [pod], env: { CONNECTOR: 'none' } })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  await pod?.stop()
})

let key: string
let keys = 0
beforeEach(() => {
  keys += 1
  key = `key-${keys}`
})

const createWithKey = (body?: Record<string, unknown>) =>
  create(stack, { headers: { 'idempotency-key': key }, ...(body === undefined ? {} : { body }) })

const idsOf = (answers: readonly Awaited<ReturnType<typeof create>>[]): ReadonlySet<string | null> =>
  new Set(answers.map((answer) => answer.headers.get('x-session-id')))

describe('an Idempotency-Key', () => {
  test('sent again finds the session of the first create', async () => {
    const first = await create(stack, { headers: { 'idempotency-key': key } })
    const again = await create(stack, { headers: { 'idempotency-key': key } })

    expect([first.status, again.status]).toEqual([200, 200])
    expect(idsOf([first, again])).toEqual(new Set([expect.stringMatching(/^ctx_/)]))
  })

  test('sent twenty times at once makes one session', async () => {
    const before = await metric(stack, 'sessions_created_total')

    const answers = await Promise.all(Array.from({ length: 20 }, () => createWithKey()))

    expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(200))
    expect(idsOf(answers).size).toBe(1)
    expect(await metric(stack, 'sessions_created_total')).toBe(before + 1)
    const [id] = idsOf(answers)
    await eventually(async () => expect((await view(stack, id ?? '')).turns).toBe(20))
  })

  test('with another body is refused', async () => {
    await createWithKey({ model: 'scripted', prompt: 'one' })

    const other = await createWithKey({ model: 'scripted', prompt: 'two' })

    expect(other.status).toBe(400)
    expect(other.headers.get('x-session-id')).toBeNull()
    expect(errorOf(other)).toMatchObject({ code: 'idempotency_key_reused', param: 'Idempotency-Key' })
  })

  test('of another tenant is another key', async () => {
    const mine = await createdId(stack, { headers: { 'idempotency-key': key } })
    const theirs = await createdId(stack, { headers: { 'idempotency-key': key, authorization: 'Bearer other' } })

    expect(theirs).not.toBe(mine)
  })

  test('of a create that failed is free again', async () => {
    pod.next((_request, reply) => reply.json(500, { error: { message: 'no', type: 'server_error' } }))
    const failed = await createWithKey()

    const again = await eventually(async () => {
      const answer = await createWithKey({ model: 'scripted', prompt: 'another body' })
      expect(answer.status).toBe(200)
      return answer
    })

    expect(failed.status).toBe(500)
    expect(failed.headers.get('x-session-id')).toBeNull()
    expect(again.headers.get('x-session-id')).toMatch(/^ctx_/)
  })

  test('works the same on an inference path', async () => {
    const headers = { 'idempotency-key': key, 'x-session-ttl': '60' }
    const body = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] }
    const first = await createdId(stack, { path: '/v1/chat/completions', headers, body })
    const again = await createdId(stack, { path: '/v1/chat/completions', headers, body })

    expect(again).toBe(first)
  })
})

describe('the SDK, when it tries again by itself', () => {
  const lastTries = (count: number) =>
    pod
      .requests()
      .slice(-count)
      .map(({ headers }) => headers['x-stainless-retry-count'])

  /** The SDK over a network that may lose answers, or that gives up after `timeoutMs`. */
  const sdk = (network: { readonly fetch?: typeof fetch; readonly timeoutMs?: number } = {}): OpenAI =>
    new OpenAI({
      baseURL: `${stack.url}/v1`,
      apiKey: 'test-key',
      maxRetries: 2,
      defaultHeaders: { 'x-session-ttl': '60' },
      ...(network.fetch === undefined ? {} : { fetch: network.fetch }),
      ...(network.timeoutMs === undefined ? {} : { timeout: network.timeoutMs }),
    })

  const asks = {
    '/v1/completions': (client: OpenAI, text: string) =>
      client.completions.create({ model: 'scripted', prompt: text }).withResponse(),
    '/v1/chat/completions': (client: OpenAI, text: string) =>
      client.chat.completions.create({ model: 'scripted', messages: [{ role: 'user', content: text }] }).withResponse(),
    '/v1/responses': (client: OpenAI, text: string) =>
      client.responses.create({ model: 'scripted', input: text }).withResponse(),
  }

  test.each(inferencePaths)('ends with one session after a 500: %s', async (path) => {
    pod.next((_request, reply) => reply.json(500, { error: { message: 'no', type: 'server_error' } }))

    const { data, response } = await asks[path](sdk(), `after a 500 ${path}`)

    const id = response.headers.get('x-session-id') ?? ''
    expect(data).toMatchObject(wholeAnswer(path) as object)
    expect(lastTries(2)).toEqual(['0', '1'])
    await eventually(async () => expect((await view(stack, id)).turns).toBe(1))
  })

  test.each(inferencePaths)('finds the session of the first try when its answer got lost: %s', async (path) => {
    const before = await metric(stack, 'sessions_created_total')
    const lost: (string | null)[] = []
    const losingTheFirst: typeof fetch = async (...request) => {
      const response = await fetch(...request)
      if (lost.length > 0) return response
      await response.arrayBuffer()
      lost.push(response.headers.get('x-session-id'))
      throw new TypeError('the connection was lost')
    }

    const { response } = await asks[path](sdk({ fetch: losingTheFirst }), `answer lost ${path}`)

    expect(lost).toEqual([expect.stringMatching(/^ctx_/)])
    expect(response.headers.get('x-session-id')).toBe(lost[0])
    expect(await metric(stack, 'sessions_created_total')).toBe(before + 1)
  })

  test.each(inferencePaths)('ends with one session when it gave the first try up: %s', async (path) => {
    const before = await metric(stack, 'sessions_active')
    pod.next(() => {
      // Never answered.
    })

    const { response } = await asks[path](sdk({ timeoutMs: 500 }), `given up ${path}`)

    const id = response.headers.get('x-session-id') ?? ''
    expect(lastTries(2)).toEqual(['0', '1'])
    await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 1 }))
    await eventually(async () => expect(await metric(stack, 'sessions_active')).toBe(before + 1))
  })

  test('two conversations that start alike stay two', async () => {
    const ids = await Promise.all(
      [1, 2].map(async () => {
        const { response } = await asks['/v1/completions'](sdk(), 'the same beginning')
        return response.headers.get('x-session-id')
      }),
    )

    expect(new Set(ids).size).toBe(2)
  })
})
