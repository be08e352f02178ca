import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import {
  cacheLine,
  create,
  createdId,
  errorOf,
  look,
  prompt,
  remove,
  untilStored,
  use,
  view,
} from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

/** Thirty times what the gateway may take to go on without Redis, for a busy machine. */
const promptlyMs = 10_000

let admin: Redis
const stack = useStack(
  { store: 'redis', redis: { persistence: 'append-only' }, pods: embeddedPods({ count: 1 }) },
  ({ redis }) => {
    admin = new Redis(redis?.url ?? '', { lazyConnect: true, protocol: 2 }).on('error', () => undefined)
  },
)
afterAll(() => admin?.disconnect())

interface Fault {
  readonly fault: string
  begin(): Promise<unknown>
  end(): Promise<unknown>
  /** What the requests that only read, and the one that deletes, may get meanwhile. */
  readonly read: readonly (200 | 503)[]
  readonly delete: 200 | 503
}

const faults: readonly Fault[] = [
  {
    fault: 'stopped',
    begin: async () => stack.redis?.child.kill(),
    end: async () => {
      if (stack.redis?.child.isRunning() === false) await stack.restartRedis()
    },
    read: [503],
    delete: 503,
  },
  {
    fault: 'frozen',
    begin: async () => stack.redis?.child.pause(),
    end: async () => stack.redis?.child.resume(),
    read: [503],
    delete: 503,
  },
  {
    fault: 'full',
    begin: () => admin.config('SET', 'maxmemory', '1'),
    end: () => admin.config('SET', 'maxmemory', '0'),
    read: [200],
    delete: 200,
  },
  {
    fault: 'read-only',
    begin: () => admin.replicaof('127.0.0.1', '1'),
    end: () => admin.replicaof('NO', 'ONE'),
    // After every write that was refused the gateway connects anew, as a master may be found then.
    read: [200, 503],
    delete: 503,
  },
]

/** Sends a request and expects its answer soon. */
const promptly = async <T>(ask: () => Promise<T>): Promise<T> => {
  const startedMs = performance.now()
  const answer = await ask()
  expect(performance.now() - startedMs).toBeLessThan(promptlyMs)
  return answer
}

const body = { model, prompt: prompt(15), max_tokens: 2 }
const chat = { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 2 }
const responses = { model, input: 'hello', max_output_tokens: 2 }
const turns = [
  { what: 'completions', path: '/v1/completions', body },
  { what: 'streamed completions', path: '/v1/completions', body: { ...body, stream: true } },
  { what: 'chat', path: '/v1/chat/completions', body: chat },
  { what: 'streamed chat', path: '/v1/chat/completions', body: { ...chat, stream: true } },
  { what: 'responses', path: '/v1/responses', body: responses },
  { what: 'streamed responses', path: '/v1/responses', body: { ...responses, stream: true } },
] as const

describe.each(faults)('Redis $fault', (fault) => {
  let kept: string
  let doomed: string
  let degradedBefore: number

  beforeAll(async () => {
    // The circuit breaker may still be open after the fault before.
    kept = await eventually(() => createdId(stack, { body, headers: { 'x-session-ttl': '1000' } }))
    doomed = await eventually(() => createdId(stack, { body }))
    await Promise.all([untilStored(stack, kept, 1), untilStored(stack, doomed, 1)])
    degradedBefore = await metric(stack, 'degraded_total', { reason: 'store_unavailable' })
    await fault.begin()
  })
  afterAll(() => fault.end())

  test.each(turns)('a turn is answered in full: $what', async ({ path, body }) => {
    const answer = await promptly(() => use(stack, kept, { path, body }))

    expect(answer.status).toBe(200)
    expect(cacheLine(answer)).toBe('miss; reason=store_unavailable')
    expect(answer.headers.get('x-session-id')).toBe(kept)
    expect(answer.headers.get('x-session-expires-at')).toBeNull()
    expect(answer.text).toMatch(/one|choices|output/)
  })

  test.each(turns)('a turn that asks for a session is answered without one: $what', async (turn) => {
    const answer = await promptly(() => create(stack, { ...turn, headers: { 'x-session-ttl': '60' } }))

    expect(answer.status).toBe(200)
    expect(cacheLine(answer)).toBe('none; reason=store_unavailable')
    expect(answer.headers.get('x-session-id')).toBeNull()
  })

  test('creating a context is refused', async () => {
    const answer = await promptly(() => create(stack, { body }))

    expectUnavailable(answer)
  })

  test('setting the TTL is refused', async () => {
    const answer = await promptly(() => setTtl(kept, 5))

    expectUnavailable(answer)
  })

  test.each([
    { what: 'GET of one', ask: () => look(stack, kept), expected: fault.read },
    { what: 'GET of all', ask: () => call(`${stack.url}/v1/context`), expected: fault.read },
    { what: 'DELETE', ask: () => remove(stack, doomed), expected: [fault.delete] },
  ])('$what answers $expected', async ({ ask, expected }) => {
    const answer = await promptly(ask)

    const { status, headers, text } = answer
    expect(expected).toContain(status)
    expect({ retry: headers.has('retry-after'), text }).toEqual(
      status === 200
        ? { retry: false, text: expect.stringContaining('"object":') }
        : { retry: true, text: expect.stringContaining('"code":"session_store_unavailable"') },
    )
  })

  test('is counted', async () => {
    const degraded = await metric(stack, 'degraded_total', { reason: 'store_unavailable' })

    expect(degraded - degradedBefore).toBeGreaterThanOrEqual(turns.length)
  })

  test('when it is back, so are the sessions', async () => {
    await fault.end()

    const seen = await eventually(() => view(stack, kept))
    expect(seen).toMatchObject({ ttl: 1000, turns: 1, kv: { stored: { turn: 1 } } })
    const hit = await eventually(async () => {
      const answer = await use(stack, kept, { body })
      expect(cacheLine(answer)).toMatch(/^hit; /)
      return answer
    })
    expect(hit.status).toBe(200)
    expect((await look(stack, doomed)).status).toBe(fault.delete === 200 ? 404 : 200)
    // A gateway that was refused a write may be connecting anew.
    await eventually(async () => {
      await remove(stack, kept)
      expect((await look(stack, kept)).status).toBe(404)
    })
    expect(await eventually(() => createdId(stack, { body }))).toMatch(/^ctx_/)
  })
})

const setTtl = (id: string, ttl: number) => call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl } })

const expectUnavailable = (answer: Awaited<ReturnType<typeof call>>): void => {
  expect(answer.status).toBe(503)
  expect(errorOf(answer)).toMatchObject({ type: 'api_error', code: 'session_store_unavailable' })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(answer.headers.get('x-session-id')).toBeNull()
}
