import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createPodProbe, type PodProbe } from '../../../src/routing/pod-probe.ts'
import { type FakeEngine, startFakeEngine } from './fake-engine.ts'

const idle = { running: 0, waiting: 0, kvUsage: 0 }
const never = new AbortController().signal

describe('createPodProbe', () => {
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

  test('a healthy engine and its load', async () => {
    engine.behave('/metrics', { status: 200, body: 'vllm:num_requests_running 2\n' })
    expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: { ...idle, running: 2 } })
  })

  test.each([
    { name: 'an error', status: 503, problem: 'GET /health answered 503' },
    { name: 'a redirect', status: 302, problem: 'GET /health answered 302' },
    { name: 'another success', status: 204, problem: undefined },
  ])('$name on the health check', async ({ status, problem }) => {
    engine.behave('/health', { status })
    expect(await probe.probe(engine.address, never)).toEqual({ problem, load: idle })
  })

  test('an engine without metrics has no load that is known', async () => {
    engine.behave('/metrics', { status: 501, body: 'not supported' })
    expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: idle })
  })

  test('metrics are read up to a megabyte', async () => {
    const filler = `# ${'x'.repeat(1_022)}\n`.repeat(1_100)
    const body = `vllm:num_requests_running 2\n${filler}vllm:num_requests_waiting 3\n`
    engine.behave('/metrics', { status: 200, body })
    expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: { ...idle, running: 2 } })
  })

  test('endless metrics are read up to the limit', async () => {
    engine.behave('/metrics', { status: 200, body: `# ${'x'.repeat(1_022)}\n`.repeat(64), endless: true })
    expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: idle })
  })

  test('a health check with an endless body succeeds by its status', async () => {
    engine.behave('/health', { status: 200, body: 'x'.repeat(64 * 1024), endless: true })
    expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: idle })
  })

  test('a refused connection is a problem', async () => {
    const { address } = engine
    await engine.stop()
    expect(await probe.probe(address, never)).toEqual({ problem: 'ECONNREFUSED', load: undefined })
  })

  test('a response that is not HTTP is a problem', async () => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.end('SSH-2.0-OpenSSH_9.2\r\n')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const result = await probe.probe(`127.0.0.1:${port}`, never)
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
    expect(result.problem).toMatch('HTTP')
    expect(result.load).toBeUndefined()
  })

  describe('with a short deadline', () => {
    beforeEach(async () => {
      await probe.close()
      probe = createPodProbe({ deadlineMs: 100 })
    })

    test('an engine that does not answer its health check', async () => {
      engine.behave('/health', 'silent')
      expect(await probe.probe(engine.address, never)).toEqual({ problem: 'no answer within 100 ms', load: idle })
    })

    test('metrics that time out give no load and do not affect the health', async () => {
      engine.behave('/metrics', 'silent')
      expect(await probe.probe(engine.address, never)).toEqual({ problem: undefined, load: undefined })
    })
  })

  test('resolves at once when its signal fires', async () => {
    engine.behave('/health', 'silent')
    const off = new AbortController()
    const result = probe.probe(engine.address, off.signal)
    off.abort()
    expect(await result).toMatchObject({ problem: expect.stringMatching('aborted') })
    expect(await probe.probe(engine.address, off.signal)).toMatchObject({ problem: expect.stringMatching('aborted') })
  })
})
