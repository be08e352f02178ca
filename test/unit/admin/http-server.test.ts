import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Readiness } from '../../../src/admin/admin-routes.ts'
import { createAdminServer } from '../../../src/admin/http-server.ts'
import { operatorsParts } from '../../support/operators-parts.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

const operators = () => {
  const { api, access } = operatorsParts()
  return { api, access }
}

const ready: Readiness = { ready: true, reasons: [], degraded: false }

describe('createAdminServer', () => {
  let readiness: () => Readiness
  let render: () => Promise<string>
  let errors: unknown[]
  let server: ReturnType<typeof createAdminServer>
  let port: number

  const serverAt = (at: number) =>
    createAdminServer({
      host: '127.0.0.1',
      port: at,
      version: '1.2.3',
      ...operators(),
      metrics: { contentType: 'text/plain; version=0.0.4', render: () => render() },
      readiness: () => readiness(),
      redactedConfig: () => ({ tenant: { secret: '[redacted]' } }),
      pageTimeoutMs: 50,
      onError: (error) => void errors.push(error),
    })

  beforeEach(async () => {
    readiness = () => ready
    render = async () => 'metric 1\n'
    errors = []
    server = serverAt(0)
    const address = await server.start()
    port = address.port
    expect(address).toEqual({ host: '127.0.0.1', port: expect.any(Number) })
  })

  afterEach(async () => {
    await server.stop()
  })

  const ask = (
    path: string,
    options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { method = 'GET', headers = {}, body } = options
      const asking = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => void chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        )
      })
      asking.on('error', reject)
      asking.end(body)
    })

  test.each([
    { path: '/', type: 'text/plain; charset=utf-8', holds: 'Context Cache Gateway 1.2.3' },
    { path: '/healthz', type: 'text/plain; charset=utf-8', holds: 'ok' },
    { path: '/readyz', type: 'application/json; charset=utf-8', holds: '"ready": true' },
    { path: '/metrics', type: 'text/plain; version=0.0.4', holds: 'metric 1' },
    { path: '/config', type: 'application/json; charset=utf-8', holds: '"secret": "[redacted]"' },
    { path: '/metrics?name[]=x', type: 'text/plain; version=0.0.4', holds: 'metric 1' },
  ])('GET $path answers 200', async ({ path, type, holds }) => {
    const answer = await ask(path)
    expect(answer).toMatchObject({
      status: 200,
      headers: {
        'content-type': type,
        'content-length': String(answer.body.length),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      },
      body: expect.stringContaining(holds),
    })
  })

  test('/ lists every page', async () => {
    const { body } = await ask('/')
    const paths = [...body.matchAll(/^(\/\S+)/gm)].map(([, path]) => path ?? '')
    expect(paths).toEqual(['/healthz', '/readyz', '/metrics', '/config', '/console/', '/api'])
    for (const path of paths.slice(0, -1)) expect((await ask(path)).status).toBe(200)
  })

  test('/readyz answers 503 with the reasons when not ready', async () => {
    readiness = () => ({ ...ready, ready: false, reasons: ['no pod is ready'] })
    const { status, body } = await ask('/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(body)).toEqual({ ...ready, ready: false, reasons: ['no pod is ready'] })
    expect((await ask('/healthz')).status).toBe(200)
  })

  test.each([
    { name: 'throws', broken: () => Promise.reject(new Error('secret reason')) },
    { name: 'never ends', broken: () => new Promise<string>(() => undefined) },
  ])('a page answers 503 without the reason when its making $name', async ({ broken }) => {
    render = broken
    expect(await ask('/metrics')).toMatchObject({ status: 503, body: expect.not.stringContaining('secret') })
    expect(errors).toHaveLength(1)
  })

  test.each(['/nothing', '/healthz/', '//', '/..%2fetc', '/__proto__', '*'])('%s answers 404', async (path) => {
    expect((await ask(path)).status).toBe(404)
  })

  test('HEAD answers without a body', async () => {
    expect(await ask('/healthz', { method: 'HEAD' })).toMatchObject({
      status: 200,
      headers: { 'content-length': '3' },
      body: '',
    })
  })

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s answers 405', async (method) => {
    expect(await ask('/metrics', { method, headers: { 'content-length': '0' } })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    })
  })

  test.each([
    { name: 'a body', options: { method: 'POST', body: 'x' } },
    { name: 'a GET with a body', options: { headers: { 'content-length': '5' }, body: 'hello' } },
    { name: 'a chunked body', options: { headers: { 'transfer-encoding': 'chunked' }, body: 'hello' } },
  ])('$name is refused with 413 and the connection closed', async ({ options }) => {
    expect(await ask('/healthz', options)).toMatchObject({ status: 413, headers: { connection: 'close' } })
  })

  test('headers of more than 8 KiB are refused with 431', async () => {
    expect((await ask('/healthz', { headers: { 'x-long': 'x'.repeat(10_000) } })).status).toBe(431)
  })

  describe('beside connections that ask for nothing', () => {
    const silent: Socket[] = []
    const connectSilently = async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      silent.push(socket)
      await once(socket, 'connect')
      return socket.resume()
    }

    const untilClosed = async (socket: Socket): Promise<void> => {
      if (!socket.closed) await once(socket, 'close')
    }

    afterEach(() => {
      for (const socket of silent.splice(0)) socket.destroy()
    })

    test('600 of them keep neither a new client nor one that asks again from its answer', async () => {
      const asking = await connectSilently()
      const askAgain = async (): Promise<string> => {
        const answered = once(asking, 'data')
        asking.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
        return String(await answered)
      }
      for (let count = 0; count < 600; count += 1) {
        await connectSilently()
        if (count % 100 === 0) expect(await askAgain()).toContain('200 OK')
      }
      expect((await ask('/healthz')).status).toBe(200)
      expect(await askAgain()).toContain('200 OK')
      await Promise.all(silent.slice(1, 89).map(untilClosed))
    })

    test('those that have sent nothing, or a part of a request, are closed within seconds', async () => {
      const sockets = [await connectSilently(), await connectSilently()]
      sockets[1]?.write('GET /healthz HTTP/1.1\r\nhost:')
      const signal = AbortSignal.timeout(15_000)
      await Promise.all(sockets.map((socket) => once(socket, 'close', { signal })))
    })
  })

  test('start rejects when the port is taken', async () => {
    const second = serverAt(port)
    await expect(second.start()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await second.stop()
  })

  test('stop closes the connections of clients', async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
    await new Promise((resolve) => socket.once('data', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await server.stop()
    await closed
    await expect(ask('/healthz')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
