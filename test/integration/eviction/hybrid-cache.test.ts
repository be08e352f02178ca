import { afterEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import {
  cacheLine,
  create,
  createdId,
  errorOf,
  remove,
  storedSession,
  untilStored,
  untilTurns,
  use,
  view,
} from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useScriptedStack, useStack } from '../support/use-stack.ts'

const body = { model, prompt: 'What is kept has to be worth its place.', max_tokens: 2 }
const longBody = { ...body, max_tokens: 30_000, ignore_eos: true, stream: true }

describe('the memory store with the limits of a cache', () => {
  const stack = useStack({
    pods: embeddedPods({ count: 1, slots: 8, contextTokensPerSlot: 32_768 }),
    env: { CTX_CACHE_MAXSIZE: '3', CTX_CACHE_TTL: '1800', CTX_CACHE_MEMORY_THRESHOLD: '0.85' },
  })
  let sessions: string[] = []
  afterEach(async () => {
    await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
    await Promise.all(sessions.map((id) => remove(stack, id)))
    sessions = []
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
  })

  const evictions = () => metric(stack, 'sessions_deleted_total', { reason: 'count' })
  const newSession = async (): Promise<string> => {
    const id = await storedSession(stack, { body })
    sessions.push(id)
    return id
  }
  const hasFile = async (id: string): Promise<boolean> => (await view(stack, id)).kv.stored !== null
  /** A turn that goes on until what it resolves to is called. */
  const longTurn = async (id: string): Promise<() => Promise<void>> => {
    const response = await post(`${stack.url}/v1/completions`, longBody, { headers: { 'x-session-id': id } })
    expect(response.status).toBe(200)
    return async () => response.body?.cancel()
  }

  test('beyond CTX_CACHE_MAXSIZE the least recently used session goes, with its KV, and may start anew', async () => {
    const [first, second, third] = [await newSession(), await newSession(), await newSession()]
    await use(stack, first, { body })
    await untilStored(stack, first, 2)
    const before = await evictions()

    const fourth = await newSession()
    expect(await evictions()).toBe(before + 1)
    expect((await call(`${stack.url}/v1/context/${second}`)).status).toBe(404)
    expect(await Promise.all([first, third, fourth].map(hasFile))).toEqual([true, true, true])
    await eventually(async () => expect(await stack.kvFiles()).toHaveLength(3))

    const response = await use(stack, second, { body })
    sessions.push(second)
    expect([response.status, cacheLine(response)]).toEqual([200, 'miss; reason=session_evicted'])
    await untilStored(stack, second, 1)
    expect(cacheLine(await use(stack, second, { body }))).toMatch(/^hit; /)
  })

  test('a session in a turn never goes; when all are, creates are refused, and inference has no session', async () => {
    const [first, second, third] = [await newSession(), await newSession(), await newSession()]
    const turns = [await longTurn(first)]
    const fourth = await newSession()
    expect((await view(stack, first)).turns).toBe(1)
    expect((await call(`${stack.url}/v1/context/${second}`)).status).toBe(404)

    turns.push(await longTurn(third), await longTurn(fourth))
    const refused = await create(stack, { body })
    expect(refused.status).toBe(503)
    expect(errorOf(refused)).toMatchObject({ code: 'session_store_unavailable' })
    const plain = await create(stack, { path: '/v1/completions', body, headers: { 'x-session-ttl': '60' } })
    const seen = [plain.status, cacheLine(plain), plain.headers.get('x-session-id')]
    expect(seen).toEqual([200, 'none; reason=store_unavailable', null])
    await Promise.all(turns.map((end) => end()))
    await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
    await newSession()
  })
})

describe('the memory store in a process whose memory is short', () => {
  const { stack } = useScriptedStack({
    // The gateway itself takes more than a tenth of this.
    env: { NODE_OPTIONS: '--max-old-space-size=96', CTX_CACHE_MEMORY_THRESHOLD: '0.1' },
  })

  test('makes room by the least recently used ones, below any number of sessions, and says why', async () => {
    const ids: string[] = []
    const isUnderPressure = async (): Promise<boolean> =>
      (await metric(stack, 'sessions_deleted_total', { reason: 'memory' })) > 0
    while (ids.length < 200 && !(await isUnderPressure())) {
      const id = await createdId(stack, { body })
      ids.push(id)
      // The end of a turn uses its session too: without this, the first one may be used last.
      await untilTurns(stack, id, 1)
    }

    expect(await metric(stack, 'sessions_deleted_total', { reason: 'memory' })).toBeGreaterThan(0)
    expect(await metric(stack, 'sessions_deleted_total', { reason: 'count' })).toBe(0)
    expect(await metric(stack, 'sessions_bytes')).toBeLessThanOrEqual(65_536)
    expect((await call(`${stack.url}/v1/context/${ids[0]}`)).status).toBe(404)
    expect((await call(`${stack.url}/v1/context/${ids.at(-1)}`)).status).toBe(200)
    expect((await use(stack, ids[0] ?? '', { body })).status).toBe(200)
  })
})
