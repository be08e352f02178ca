import { afterEach, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model, post } from '../support/client.ts'
import { envoyStat, isReady, metric } from '../support/metrics.ts'
import { openRaw } from '../support/raw-http.ts'
import { inferencePaths } from '../support/scripted-responses.ts'
import {
  cacheLine,
  look,
  prompt,
  remove,
  storedSession,
  untilExpired,
  untilGone,
  use,
  view,
} from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'
import { type EngineProxy, startEngineProxies } from './engine-proxy.ts'

let proxies: readonly EngineProxy[] = []
const undo: (() => unknown)[] = []
const sessions: string[] = []

const stack = useStack({
  store: 'redis',
  // One slot each: a turn that keeps it keeps out all others.
  pods: async (kvDirectory) => {
    proxies = await startEngineProxies({ count: 2, kvDirectory, slots: 1 })
    return proxies
  },
  env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100' },
})
afterEach(async () => {
  for (const step of undo.splice(0)) await step()
  await Promise.all(sessions.splice(0).map((id) => remove(stack, id)))
  await untilReady(() => true)
})

/** Too few tokens for the gateway to learn costs from: a load stays worthwhile. */
const shortBody = { model, prompt: prompt(10), max_tokens: 2 }
const longAnswer = {
  '/v1/completions': { model, prompt: 'hello', max_tokens: 30_000, stream: true },
  '/v1/chat/completions': { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 30_000, stream: true },
  '/v1/responses': { model, input: 'hello', max_output_tokens: 30_000, stream: true },
} as const
const longPaths = inferencePaths.filter((path) => path !== '/v1/messages')

const newSession = async (): Promise<string> => {
  const id = await storedSession(stack, { body: shortBody })
  sessions.push(id)
  return id
}

const untilReady = (expected: (proxy: EngineProxy) => boolean) =>
  eventually(() => expect(proxies.map(({ address }) => isReady(stack, address))).toEqual(proxies.map(expected)))

/** Takes the session's pod out of the routing. Returns the other one, where the next turn goes. */
const leaveHome = async (id: string): Promise<EngineProxy> => {
  const address = (await view(stack, id)).kv.pod
  const home = proxies.find((proxy) => proxy.address === address)
  const other = proxies.find((proxy) => proxy !== home)
  if (home === undefined || other === undefined) throw new Error('there are two pods')
  home.pod.setHealthy(false)
  undo.push(() => home.pod.setHealthy(true))
  await untilReady((proxy) => proxy !== home)
  return other
}

/** Sends a turn. `leave` resolves when the connection is closed on this side. */
const startTurn = (url: string, headers: Record<string, string>, body: unknown) => {
  const client = new AbortController()
  const answer = post(url, body, { headers, signal: client.signal })
  answer.catch(() => undefined)
  return {
    answer,
    leave: async (): Promise<void> => {
      client.abort()
      await answer.then((response) => response.text()).catch(() => undefined)
    },
  }
}

const running = async (proxy: EngineProxy): Promise<number> => {
  const { text } = await call(`${proxy.engineUrl}/metrics`)
  return Number(/^llamacpp:requests_processing (\S+)$/m.exec(text)?.[1])
}

const untilIdle = () =>
  eventually(async () => expect(await Promise.all(proxies.map(running))).toEqual(proxies.map(() => 0)))

describe('a client that leaves while its context is loaded', () => {
  const holdRestores = (proxy: EngineProxy) => {
    const hold = proxy.hold(/action=restore/)
    undo.push(hold.release)
    return hold
  }

  test('frees the slot as soon as the engine has responded', async () => {
    const id = await newSession()
    const other = await leaveHome(id)
    const { begun, release } = holdRestores(other)

    const turn = startTurn(`${stack.url}/v1/completions`, { 'x-session-id': id }, shortBody)
    await begun
    await turn.leave()
    release()

    expect((await view(stack, await newSession())).kv.pod).toBe(other.address)
    expect(await view(stack, id)).toMatchObject({ turns: 1 })
    expect(cacheLine(await use(stack, id, { body: shortBody }))).toMatch(/^hit; tier=store/)
  })
})

describe('a client that leaves in the middle of a streamed response', () => {
  test.each(longPaths)('stops the engine, and its turn does not count: %s', async (path) => {
    const id = await newSession()
    const before = await metric(stack, 'turns_total', { outcome: 'client_left' })

    const turn = startTurn(`${stack.url}${path}`, { 'x-session-id': id }, longAnswer[path])
    const reader = (await turn.answer).body?.getReader()
    await reader?.read()
    await reader?.cancel()
    await turn.leave()

    await untilIdle()
    await eventually(async () => {
      expect(await metric(stack, 'turns_total', { outcome: 'client_left' })).toBe(before + 1)
    })
    expect(await metric(stack, 'turns_in_flight')).toBe(0)
    expect(await view(stack, id)).toMatchObject({ turns: 1 })
    // The gateway empties the slot after the turn.
    await eventually(async () => expect(cacheLine(await use(stack, id, { body: shortBody }))).not.toContain('no_slot'))
    await untilExpired(stack, id)
  })

  test.each(longPaths)('leaves no session that it was creating: %s', async (path) => {
    const before = await metric(stack, 'sessions_active')

    const turn = startTurn(`${stack.url}/v1/context`, {}, longAnswer[path])
    const response = await turn.answer
    const id = response.headers.get('x-session-id') ?? ''
    const reader = response.body?.getReader()
    await reader?.read()
    expect((await look(stack, id)).status).toBe(200)
    await reader?.cancel()
    await turn.leave()

    await untilIdle()
    await untilGone(stack, id)
    expect(await metric(stack, 'sessions_active')).toBe(before)
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
    expect(cacheLine(await use(stack, id, { body: shortBody }))).toBe('miss; reason=session_not_found')
  })
})

describe('a client that leaves before its request is whole', () => {
  /** Sends the beginning of a request. */
  const begin = (path: string, header: string) =>
    openRaw(stack.port, {
      startLine: `POST ${path} HTTP/1.1`,
      headers: [
        'host: x',
        'authorization: Bearer test-key',
        'content-type: application/json',
        header,
        'content-length: 1000',
      ],
      body: '{"model":"tiny-random"',
    })

  test.each([
    { what: 'a create', path: '/v1/context', header: 'x-test: 1' },
    { what: 'a create with a TTL', path: '/v1/completions', header: 'x-session-ttl: 60' },
  ])('leaves nothing: $what', async ({ path, header }) => {
    const before = await metric(stack, 'sessions_active')
    const socket = await begin(path, header)
    await eventually(async () => expect(await envoyStat(stack, 'http.clients.downstream_rq_active')).toBe(1))

    socket.destroy()

    await eventually(async () => expect(await envoyStat(stack, 'http.clients.downstream_rq_active')).toBe(0))
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(0))
    expect(await metric(stack, 'sessions_active')).toBe(before)
  })

  test('holds no slot of a session before it leaves', async () => {
    const id = await newSession()
    const forwarded = { route: 'completions', outcome: 'forwarded' }
    const before = await metric(stack, 'requests_total', forwarded)
    const socket = await begin('/v1/completions', `x-session-id: ${id}`)

    const other = await use(stack, id, { body: shortBody })

    expect([other.status, cacheLine(other)]).toEqual([200, expect.stringMatching(/^hit/)])
    expect(await metric(stack, 'requests_total', forwarded)).toBe(before + 1)
    socket.destroy()
    await untilExpired(stack, id)
  })
})
