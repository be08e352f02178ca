import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { afterEach, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { createLatch } from '../../support/latch.ts'
import { model, post, postAndLeave } from '../support/client.ts'
import { envoyStat, metric } from '../support/metrics.ts'
import { openRaw } from '../support/raw-http.ts'
import { inferencePaths } from '../support/scripted-responses.ts'
import { prompt, remove, storedSession, untilExpired, untilTurns, use, view } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'
import { type EngineProxy, startEngineProxies } from './engine-proxy.ts'

let proxy: EngineProxy
const undo: (() => unknown)[] = []
const sessions: string[] = []

// A turn that keeps the only slot keeps out all others; its lease runs for longer than any test.
const stack = useStack({
  pods: async (kvDirectory) => {
    const proxies = await startEngineProxies({ count: 1, kvDirectory, slots: 1 })
    for (const only of proxies) proxy = only
    return proxies
  },
  env: { CTX_LOG_LEVEL: 'warn' },
})
afterEach(async () => {
  for (const step of undo.splice(0)) await step()
  await Promise.all(sessions.splice(0).map((id) => remove(stack, id)))
})

/** On which a turn holds a slot. */
const slotPaths = inferencePaths.filter((path) => path !== '/v1/messages')
const shortBody = { model, prompt: prompt(10), max_tokens: 2 }

const newSession = async (): Promise<string> => {
  const id = await storedSession(stack, { body: shortBody })
  sessions.push(id)
  return id
}

const untilNothingRuns = () => eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(0))

const forwarded = (): Promise<number> => metric(stack, 'requests_total', { outcome: 'forwarded' })

/** Sends a turn whose client has gone, and whose decision is there, before Envoy looks at either: in this order. */
const leaveAsForwarded = async (path: string, headers: Readonly<Record<string, string>>): Promise<void> => {
  const body = JSON.stringify(shortBody)
  // The slot has a newer session's context, so that the decision waits for the engine.
  await newSession()
  const before = await forwarded()
  const { begun, release } = proxy.hold(/action=restore/)
  undo.push(release)
  const socket = await openRaw(stack.port, {
    startLine: `POST ${path} HTTP/1.1`,
    headers: [
      'host: x',
      'authorization: Bearer test-key',
      'content-type: application/json',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${body.length}`,
    ],
    body,
  })
  await begun
  await pauseEnvoy()
  socket.destroy()
  await once(socket, 'close')
  release()
  await eventually(async () => expect(await forwarded()).toBe(before + 1))
  await eventually(async () => expect(await metric(stack, 'turns_in_flight')).toBe(1))
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

test.each(slotPaths)('a turn whose client leaves just as it is forwarded ends then: %s', async (path) => {
  const id = await newSession()
  const before = await metric(stack, 'turns_total', { outcome: 'client_left' })

  await leaveAsForwarded(path, { 'x-session-id': id })

  await untilNothingRuns()
  await eventually(async () => {
    expect(await metric(stack, 'turns_total', { outcome: 'client_left' })).toBe(before + 1)
  })
  expect(await view(stack, id)).toMatchObject({ turns: 1 })
  await untilExpired(stack, id)
  await newSession()
})

test('a client cannot choose the key by which Envoy reports its request', async () => {
  const id = await newSession()
  const chosen = { 'x-context-request-key': 'mine', 'x-request-id': '5f2b1c9e-0d4f-4c0b-9d0e-6a1f3f0d7c11' }
  await leaveAsForwarded('/v1/completions', { 'x-session-id': id, ...chosen })
  await untilNothingRuns()

  expect((await use(stack, id, { headers: chosen, body: shortBody })).status).toBe(200)

  await untilTurns(stack, id, 2)
})

/** Entries that Envoy has written to its access log. */
const entriesWritten = (): Promise<number> => envoyStat(stack, 'open_telemetry_access_log.logs_written')

test('a client that leaves a request without a session is not reported', async () => {
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
  const response = post(`${stack.url}/v1/completions`, shortBody, { signal: client.signal }).catch(() => 'left')
  await begun.opened
  client.abort()
  await Promise.all([response, ended.opened])
  letPass()

  expect((await use(stack, id, { body: shortBody })).status).toBe(200)

  await untilTurns(stack, id, 2)
  // Envoy counts an entry after it has sent it.
  await eventually(async () => (await entriesWritten()) > before)
  expect(await entriesWritten()).toBe(before + 1)
})

test('hundreds of clients that leave at any moment keep neither a session nor a slot', async () => {
  const ids = [await newSession(), await newSession()]
  const requests = [
    { path: '/v1/context', headers: {} },
    { path: '/v1/completions', headers: { 'x-session-ttl': '60' } },
    ...[...ids, `ctx_${'a'.repeat(32)}`].map((id) => ({ path: '/v1/completions', headers: { 'x-session-id': id } })),
  ]
  for (let round = 0; round < 40; round += 1) {
    const leaving = requests.flatMap(({ path, headers }, index) =>
      [0, 1, 2].map((more) =>
        postAndLeave(`${stack.url}${path}`, shortBody, { headers, afterMs: (round + index * 7 + more * 3) % 40 }),
      ),
    )
    await Promise.all(leaving)
  }
  await untilNothingRuns()
  await Promise.all(ids.map((id) => untilExpired(stack, id)))
  await newSession()
})
