import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { inferencePaths } from '../support/scripted-answers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { type EngineProxy, startEngineProxy } from './engine-proxy.ts'
import { look, metric, prompt, remove, storedSession, use, view } from './support.ts'

jest.setTimeout(120_000)

let proxy: EngineProxy
let stack: Stack
const undo: (() => unknown)[] = []
const sessions: string[] = []

beforeAll(async () => {
  // Whoever keeps the only slot shuts others out; a turn's lease runs for longer than any test.
  stack = await startStack({
    pods: async (kvDirectory) => {
      proxy = await startEngineProxy({ name: 'pod-0', kvDirectory, slots: 1 })
      return [proxy]
    },
    env: { CTX_LOG_LEVEL: 'warn', CTX_KV_PREFILL_MS_PER_TOKEN: '1000' },
  })
}, 120_000)
afterEach(async () => {
  for (const step of undo.splice(0)) await step()
  await Promise.all(sessions.splice(0).map((id) => remove(stack, id)))
})
afterAll(async () => {
  await stack?.stop()
  await proxy?.pod.stop()
}, 30_000)

const shortBody = { model, prompt: prompt(10), max_tokens: 2 }

const newSession = (): Promise<string> => storedSession(stack, { body: shortBody, made: (id) => sessions.push(id) })

const untilNothingRuns = () => eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))

/** A turn that still held a session would keep it from expiring. */
const untilExpired = async (id: string): Promise<void> => {
  await call(`${stack.url}/v1/context/${id}`, { method: 'PATCH', body: { ttl: 1 } })
  await eventually(async () => expect((await look(stack, id)).status).toBe(404))
}

const forwarded = (): Promise<number> => metric(stack, 'requests_total', { outcome: 'forwarded' })

/** Sends a turn whose client has gone, and whose decision is there, before Envoy looks at either: in this order. */
const leaveAsForwarded = async (path: string, headers: Readonly<Record<string, string>>): Promise<void> => {
  const body = JSON.stringify(shortBody)
  const before = await forwarded()
  // The slot has a newer session's context, so that the decision waits for the engine.
  await newSession()
  const { begun, release } = holdRestore()
  const socket = connect({ port: stack.port, host: '127.0.0.1' })
  await once(socket, 'connect')
  const head = [`POST ${path} HTTP/1.1`, 'host: x', 'authorization: Bearer test-key', 'content-type: application/json']
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.write([...head, ...more, `content-length: ${body.length}`, '', body].join('\r\n'))
  await begun
  await pauseEnvoy()
  socket.destroy()
  await once(socket, 'close')
  release()
  await eventually(async () => expect(await forwarded()).toBe(before + 2))
  expect(await metric(stack, 'turns_in_flight')).toBe(1)
  stack.envoy.child.resume()
}

/** A signal takes a moment, in which a thread may go on. */
const pauseEnvoy = async (): Promise<void> => {
  const { child } = stack.envoy
  undo.push(() => child.resume())
  child.pause()
  await eventually(async () => {
    const threads = await readdir(`/proc/${child.pid}/task`)
    const states = await Promise.all(
      threads.map((thread) => readFile(`/proc/${child.pid}/task/${thread}/stat`, 'utf8')),
    )
    expect(states.every((state) => /\) T /.test(state))).toBe(true)
  })
}

const createLatch = () => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

const holdRestore = () => {
  const [asked, released] = [createLatch(), createLatch()]
  undo.push(
    released.open,
    proxy.intercept(/action=restore/, async (_request, _reply, passOn) => {
      asked.open()
      await released.opened
      await passOn()
    }),
  )
  return { begun: asked.opened, release: released.open }
}

test.each(inferencePaths)('a turn whose client leaves just as it is forwarded ends then: %s', async (path) => {
  const id = await newSession()
  const before = await metric(stack, 'turns_total', { outcome: 'client_left' })

  await leaveAsForwarded(path, { 'x-session-id': id })

  await untilNothingRuns()
  await eventually(async () => {
    expect(await metric(stack, 'turns_total', { outcome: 'client_left' })).toBe(before + 1)
  })
  expect(await view(stack, id)).toMatchObject({ turns: 1 })
  await untilExpired(id)
  await newSession()
})

test('a client does not choose the key by which Envoy tells of its request', async () => {
  const id = await newSession()
  const chosen = { 'x-context-request-key': 'mine', 'x-request-id': '5f2b1c9e-0d4f-4c0b-9d0e-6a1f3f0d7c11' }
  await leaveAsForwarded('/v1/completions', { 'x-session-id': id, ...chosen })
  await untilNothingRuns()

  expect((await use(stack, id, { headers: chosen, body: shortBody })).status).toBe(200)

  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2 }))
})

/** Entries that Envoy has written to its access log. */
const entriesWritten = async (): Promise<number> => {
  const { text } = await call(`http://${stack.envoy.adminAddress}/stats?filter=open_telemetry_access_log.logs_written`)
  return Number(/logs_written: (\d+)/.exec(text)?.[1])
}

test('a client that leaves a request without a session is not told of', async () => {
  const id = await newSession()
  const [begun, ended] = [createLatch(), createLatch()]
  const letPass = proxy.intercept(/POST \/v1\/completions/, async (_request, reply) => {
    begun.open()
    await reply.finished
    ended.open()
  })
  undo.push(letPass)
  const client = new AbortController()
  const before = await entriesWritten()
  const answer = fetch(`${stack.url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(shortBody),
    signal: client.signal,
  }).catch(() => 'left')
  await begun.opened
  client.abort()
  await Promise.all([answer, ended.opened])
  letPass()

  expect((await use(stack, id, { body: shortBody })).status).toBe(200)

  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2 }))
  expect(await entriesWritten()).toBe(before + 1)
})

const sendAndLeave = async (
  request: { readonly path: string; readonly headers: Record<string, string> },
  afterMs: number,
) => {
  const client = new AbortController()
  const timer = setTimeout(() => client.abort(), afterMs)
  await fetch(`${stack.url}${request.path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer test-key', 'content-type': 'application/json', ...request.headers },
    body: JSON.stringify(shortBody),
    signal: client.signal,
  })
    .then((response) => response.text())
    .catch(() => 'left')
  clearTimeout(timer)
}

test('hundreds of clients that leave at any moment keep neither a session nor a slot', async () => {
  const ids = [await newSession(), await newSession()]
  const requests = [
    { path: '/v1/context', headers: {} },
    { path: '/v1/completions', headers: { 'x-session-ttl': '60' } },
    ...[...ids, `ctx_${'a'.repeat(32)}`].map((id) => ({ path: '/v1/completions', headers: { 'x-session-id': id } })),
  ]
  for (let round = 0; round < 40; round += 1) {
    const leaving = requests.flatMap((request, index) =>
      [0, 1, 2].map((more) => sendAndLeave(request, (round + index * 7 + more * 3) % 40)),
    )
    await Promise.all(leaving)
  }
  await untilNothingRuns()
  expect(await metric(stack, 'turns_total', { outcome: 'client_left' })).toBeGreaterThan(0)
  await Promise.all(ids.map(untilExpired))
  await newSession()
})
