import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Readiness } from '../../../src/admin/admin-routes.ts'
import { type AdminServer, createAdminServer } from '../../../src/admin/http-server.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

describe('createAdminServer', () => {
  let readiness: () => Readiness | Promise<Readiness>
  let render: () => Promise<string>
  let errors: unknown[]
  let server: AdminServer
  let port: number

  beforeEach(async () => {
    readiness = () => ({ ready: true, reasons: [] })
    render = async () => 'metric 1\n'
    errors = []
    server = createAdminServer({
      host: '127.0.0.1',
      port: 0,
      version: '1.2.3',
      metrics: { contentType: 'text/plain; version=0.0.4', render: () => render() },
      readiness: () => readiness(),
      redactedConfig: { tenant: { secret: '[redacted]' } },
      pageTimeoutMs: 200,
      onError: (error) => void errors.push(error),
    })
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
  ])('GET $path', async ({ path, type, holds }) => {
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

  test('the index names every page', async () => {
    const { body } = await ask('/')
    const paths = [...body.matchAll(/^(\/\w+)/gm)].map(([, path]) => path ?? '')
    expect(paths).toEqual(['/healthz', '/readyz', '/metrics', '/config'])
    for (const path of paths) expect((await ask(path)).status).toBe(200)
  })

  test('tells why it is not ready', async () => {
    readiness = async () => ({ ready: false, reasons: ['no pod is ready'] })
    const { status, body } = await ask('/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(body)).toEqual({ ready: false, reasons: ['no pod is ready'] })
    expect((await ask('/healthz')).status).toBe(200)
  })

  test.each([
    { name: 'throws', check: () => Promise.reject(new Error('secret reason')) },
    { name: 'does not answer', check: () => new Promise<Readiness>(() => undefined) },
  ])('is not ready when the check $name', async ({ check }) => {
    readiness = check
    const { status, body } = await ask('/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(body)).toEqual({ ready: false, reasons: ['the readiness check failed; the log says why'] })
    expect(errors).toHaveLength(1)
  })

  test.each([
    { name: 'throw', broken: () => Promise.reject(new Error('secret reason')) },
    { name: 'do not come', broken: () => new Promise<string>(() => undefined) },
  ])('metrics that $name are a 503 without the reason', async ({ broken }) => {
    render = broken
    expect(await ask('/metrics')).toMatchObject({ status: 503, body: expect.not.stringContaining('secret') })
    expect(errors).toHaveLength(1)
  })

  test.each(['/nothing', '/healthz/', '//', '/..%2fetc', '/__proto__', '*'])('%s is no page', async (path) => {
    expect((await ask(path)).status).toBe(404)
  })

  test('HEAD has no body', async () => {
    expect(await ask('/healthz', { method: 'HEAD' })).toMatchObject({
      status: 200,
      headers: { 'content-length': '3' },
      body: '',
    })
  })

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is not allowed', async (method) => {
    expect(await ask('/metrics', { method, headers: { 'content-length': '0' } })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    })
  })

  test.each([
    { name: 'a body', options: { method: 'POST', body: 'x' } },
    { name: 'a body that is announced', options: { headers: { 'content-length': '5' }, body: 'hello' } },
    { name: 'a body of chunks', options: { headers: { 'transfer-encoding': 'chunked' }, body: 'hello' } },
  ])('$name is refused, and the connection closed', async ({ options }) => {
    expect(await ask('/healthz', options)).toMatchObject({ status: 413, headers: { connection: 'close' } })
  })

  test('headers are limited', async () => {
    expect((await ask('/healthz', { headers: { 'x-long': 'x'.repeat(10_000) } })).status).toBe(431)
  })

  test('a port that is taken is told', async () => {
    const second = createAdminServer({
      host: '127.0.0.1',
      port,
      version: '1',
      metrics: { contentType: 'text/plain', render },
      readiness: () => readiness(),
      redactedConfig: {},
      onError: () => undefined,
    })
    await expect(second.start()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await second.stop()
  })

  test('stops although a client keeps its connection', async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
    await new Promise((resolve) => socket.once('data', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await server.stop()
    await closed
    await expect(ask('/healthz')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
