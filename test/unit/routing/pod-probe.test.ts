import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { createPodProbe, type PodProbe, type ProbeResult } from '../../../src/routing/pod-probe.ts'
import { type Behaviour, type FakeEngine, startFakeEngine } from '../../support/fake-engine.ts'

const idle = { running: 0, waiting: 0, kvUsage: 0 }
const oneRuns = 'vllm:num_requests_running 1\n'
const anyModel = { names: new Set(), answersAnyName: true }
const never = new AbortController().signal

let engine: FakeEngine
let probe: PodProbe

beforeEach(async () => {
  engine = await startFakeEngine()
  probe = createPodProbe({ deadlineMs: 10_000 })
})

afterEach(async () => {
  await probe.close()
  await engine.stop()
})

test.each<[string, Parameters<FakeEngine['behave']>[0], Behaviour, Partial<ProbeResult>]>([
  ['health check with an error is a problem', '/health', { status: 503 }, { problem: 'GET /health answered 503' }],
  ['health check with a redirect is a problem', '/health', { status: 302 }, { problem: 'GET /health answered 302' }],
  ['health check succeeds with any 2xx', '/health', { status: 204 }, {}],
  ['metrics are the load', '/metrics', { status: 200, body: oneRuns }, { load: { ...idle, running: 1 } }],
  ['engine without metrics has no load', '/metrics', { status: 501, body: oneRuns }, {}],
  ['metrics of another engine are no load', '/metrics', { status: 200, body: 'sglang:num_running_reqs 1\n' }, {}],
  [
    'listed models are known',
    '/v1/models',
    { status: 200, body: '{"data":[{"id":"m"}]}' },
    { models: { names: new Set(['m']), answersAnyName: false } },
  ],
  ['failing list of models tells nothing', '/v1/models', { status: 503 }, { models: undefined }],
  ['refused health check is no problem', '/health', { status: 401 }, { refusal: 'GET /health answered 401' }],
  ['refused metrics are no load', '/metrics', { status: 403 }, { refusal: 'GET /metrics answered 403' }],
  ['list of models is refused', '/v1/models', { status: 401 }, { refusal: 'GET /v1/models answered 401' }],
])('%s', async (_title, path, behaviour, result) => {
  engine.behave(path, behaviour)
  expect(await probe.probe(engine.address, never)).toEqual({
    problem: undefined,
    load: undefined,
    models: anyModel,
    ...result,
  })
})

test('refused connection is a problem', async () => {
  const { address } = engine
  await engine.stop()
  expect(await probe.probe(address, never)).toEqual({ problem: 'ECONNREFUSED', load: undefined })
})

test('response that is not HTTP is a problem', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket.end('SSH-2.0-OpenSSH_9.2\r\n')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { problem, load } = await probe.probe(`127.0.0.1:${port}`, never)
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
  expect([problem, load]).toEqual([expect.stringMatching('HTTP'), undefined])
})

test.each([
  [
    'health check is a problem, and does not affect the load',
    '/health',
    { problem: 'no answer within 1000 ms', load: { ...idle, running: 1 }, models: anyModel },
  ],
  [
    'metrics give no load, and do not affect the health',
    '/metrics',
    { problem: undefined, load: undefined, models: anyModel },
  ],
] as const)('after the deadline, %s', async (_title, path, result) => {
  await probe.close()
  probe = createPodProbe({ deadlineMs: 1_000 })
  engine.behave('/metrics', { status: 200, body: oneRuns })
  engine.behave(path, 'silent')
  expect(await probe.probe(engine.address, never)).toEqual(result)
})

test('resolves at once when its signal fires, or has fired', async () => {
  engine.behave('/health', 'silent')
  const off = new AbortController()
  const result = probe.probe(engine.address, off.signal)
  off.abort()
  const aborted = { problem: expect.stringMatching('aborted') }
  expect([await result, await probe.probe(engine.address, off.signal)]).toMatchObject([aborted, aborted])
})
