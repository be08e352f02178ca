import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { inferencePaths } from '../support/scripted-answers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { type EngineProxy, startEngineProxy } from './engine-proxy.ts'
import { cacheLine, look, metric, podChanges, prompt, remove, storedSession, use, view } from './support.ts'

jest.setTimeout(60_000)

let proxies: readonly EngineProxy[] = []
let stack: Stack
const undo: (() => unknown)[] = []
const sessions: string[] = []

beforeAll(async () => {
  stack = await startStack({
    store: 'redis',
    // One slot each: whoever keeps it shuts everybody else out.
    pods: async (kvDirectory) => {
      proxies = [
        await startEngineProxy({ name: 'pod-0', kvDirectory, slots: 1 }),
        await startEngineProxy({ name: 'pod-1', kvDirectory, slots: 1 }),
      ]
      return proxies
    },
    env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '100', CTX_KV_PREFILL_MS_PER_TOKEN: '1000' },
  })
}, 120_000)
afterEach(async () => {
  for (const step of undo.splice(0)) await step()
  await Promise.all(sessions.splice(0).map((id) => remove(stack, id)))
  await untilReady(() => true)
})
afterAll(async () => {
  await stack?.stop()
  await Promise.all(proxies.map(({ pod }) => pod.stop()))
}, 30_000)

/** Few tokens, so that the estimate of what computing them takes stays as it was set, and a load may take long. */
const shortBody = { model, prompt: prompt(10), max_tokens: 2 }
const longAnswer = {
  '/v1/completions': { model, prompt: 'hello', max_tokens: 3000, stream: true },
  '/v1/chat/completions': { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 3000, stream: true },
  '/v1/responses': { model, input: 'hello', max_output_tokens: 3000, stream: true },
} as const

const newSession = (): Promise<string> => storedSession(stack, { body: shortBody, made: (id) => sessions.push(id) })

/** Gives the session one more second. A turn that still held it would keep it from expiring. */
const untilExpired = async (id: string): Promise<void> => {
  await call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl: 1 } })
  await eventually(async () => expect((await look(stack, id)).status).toBe(404))
}

const isReady = ({ address }: EngineProxy): boolean =>
  podChanges(stack, 'ready', address) > podChanges(stack, 'failing', address)

const untilReady = (expected: (proxy: EngineProxy) => boolean) =>
  eventually(() => expect(proxies.map(isReady)).toEqual(proxies.map(expected)))

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

/** Sends a turn and leaves when told to. Resolves when the connection is closed on this side. */
const startTurn = (url: string, headers: Record<string, string>, body: unknown) => {
  const client = new AbortController()
  const answer = fetch(url, {
    method: 'POST',
    headers: { authorization: 'Bearer test-key', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: client.signal,
  })
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
    let asked = (): void => undefined
    const begun = new Promise<void>((resolve) => {
      asked = resolve
    })
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    undo.push(
      release,
      proxy.intercept(/action=restore/, async (_request, _reply, passOn) => {
        asked()
        await released
        await passOn()
      }),
    )
    return { begun, release }
  }

  test('lets go of its session, which then expires as it should', async () => {
    const id = await newSession()
    const other = await leaveHome(id)
    const { begun } = holdRestores(other)
    const endedBefore = await metric(stack, 'requests_total', { route: 'completions', outcome: 'abandoned' })

    const turn = startTurn(`${stack.url}/v1/completions`, { 'x-session-id': id }, shortBody)
    await begun
    await turn.leave()

    await eventually(async () => {
      const ended = await metric(stack, 'requests_total', { route: 'completions', outcome: 'abandoned' })
      expect(ended).toBe(endedBefore + 1)
    })
    expect(await metric(stack, 'turns_in_flight')).toBe(0)
    await untilExpired(id)
    expect(other.seen().filter((line) => line.startsWith('POST /v1'))).toEqual([])
  })

  test('frees the slot for others as soon as the engine has answered', async () => {
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

describe('a client that leaves in the middle of a streamed answer', () => {
  test.each(inferencePaths)('stops the engine, and its turn does not count: %s', async (path) => {
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
    const next = await use(stack, id, { body: shortBody })
    expect(next.status).toBe(200)
    expect(cacheLine(next)).not.toContain('no_slot')
    await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2 }))
    await untilExpired(id)
  })

  test.each(inferencePaths)('leaves no session that it was creating: %s', async (path) => {
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
    await eventually(async () => expect((await look(stack, id)).status).toBe(404))
    expect(await metric(stack, 'sessions_active')).toBe(before)
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
    expect(cacheLine(await use(stack, id, { body: shortBody }))).toBe('miss; reason=session_not_found')
  })
})

describe('a client that leaves before its request is whole', () => {
  test.each([
    { what: 'a create', line: 'POST /v1/context HTTP/1.1', header: 'x-test: 1' },
    { what: 'a create with a TTL', line: 'POST /v1/completions HTTP/1.1', header: 'x-session-ttl: 60' },
  ])('leaves nothing: $what', async ({ line, header }) => {
    const before = await metric(stack, 'sessions_active')
    const streamsBefore = await metric(stack, 'ext_proc_streams_active')
    const socket = connect({ port: stack.port, host: '127.0.0.1' })
    await once(socket, 'connect')
    socket.write(
      [line, 'host: x', 'authorization: Bearer test-key', 'content-type: application/json', header].join('\r\n'),
    )
    socket.write('\r\ncontent-length: 1000\r\n\r\n{"model":"tiny-random"')
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(streamsBefore + 1))

    socket.destroy()

    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(streamsBefore))
    expect(await metric(stack, 'sessions_active')).toBe(before)
  })

  test('keeps no turn of a session', async () => {
    const id = await newSession()
    const socket = connect({ port: stack.port, host: '127.0.0.1' })
    await once(socket, 'connect')
    const forwarded = { route: 'completions', outcome: 'forwarded' }
    const before = await metric(stack, 'requests_total', forwarded)
    socket.write(
      [
        'POST /v1/completions HTTP/1.1',
        'host: x',
        'authorization: Bearer test-key',
        'content-type: application/json',
        `x-session-id: ${id}`,
        'content-length: 1000',
        '\r\n{"model":"tiny-random"',
      ].join('\r\n'),
    )
    await eventually(async () => expect(await metric(stack, 'requests_total', forwarded)).toBe(before + 1))

    socket.destroy()

    await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))
    await untilExpired(id)
  })
})
