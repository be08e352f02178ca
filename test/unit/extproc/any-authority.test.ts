import { once } from 'node:events'
import { connect, createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { createServer as createTcpServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { acceptAnyAuthority, createAuthorityFilter } from '../../../src/extproc/any-authority.ts'
import { createListener } from '../../../src/extproc/listener.ts'
import { createSelfSigned } from '../../../src/extproc/self-signed.ts'
import { listenLocally } from '../../support/local-server.ts'

let server: Http2Server
let listener: Server
let url: string

/** Answers with the headers that it received. */
beforeEach(async () => {
  server = createServer({ settings: { maxHeaderListSize: 65_535 } }).on('stream', async (stream, headers) => {
    let bytes = 0
    for await (const part of stream) bytes += part.length
    stream.respond({ ':status': 200 })
    stream.end(JSON.stringify({ ...headers, bytes }))
  })
  listener = createTcpServer((socket) => void server.emit('connection', acceptAnyAuthority(socket)))
  url = `http://127.0.0.1:${await listenLocally(listener)}`
})
afterEach(() => void listener.close())

const ask = async (client: ReturnType<typeof connect>, headers: Record<string, string>, body = Buffer.alloc(0)) => {
  const request = client.request({ ':method': 'POST', ':path': '/', ...headers }, { endStream: false })
  request.end(body)
  let text = ''
  for await (const part of request) text += part
  return JSON.parse(text)
}

test('Istio’s authority becomes one that Node.js accepts; headers and bodies are as they were', async () => {
  const client = connect(url)
  const authority = 'outbound|9002||picker.default.svc.cluster.local'
  for (const size of [0, 10, 300, 20_000]) {
    const sent = { te: 'trailers', 'x-one': 'a'.repeat(size), 'x-two': 'Umlaut \xe4' }
    const body = Buffer.alloc(size * 50, 1)
    const seen = await ask(client, { ...sent, ':authority': authority }, body)
    expect(seen).toMatchObject({
      ...sent,
      ':authority': 'outbound-9002--picker.default.svc.cluster.local',
      bytes: body.length,
    })
  }
  client.close()
})

test('Istio’s authority is accepted over TLS, and a drain waits for what is open', async () => {
  const sessions: ServerHttp2Session[] = []
  server.on('session', (session) => void sessions.push(session))
  const drain = (): void => {
    for (const session of sessions) session.close()
  }
  const injectConnection = (socket: Duplex): void => void server.emit('connection', socket)
  const secure = createListener({ injectConnection, drain }, createSelfSigned(), acceptAnyAuthority)
  const at = await secure.listen({ host: '127.0.0.1', port: 0 })
  const port = 'host' in at ? at.port : 0
  const client = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  const request = client.request({ ':method': 'POST', ':authority': 'a|b' }, { endStream: false })
  await once(server, 'stream')
  const seen: string[] = []
  const drained = secure.drain(60_000).then(() => seen.push('drained'))
  request.end()
  for await (const part of request) seen.push(JSON.parse(String(part))[':authority'])
  await drained
  expect(seen).toEqual(['a-b', 'drained'])
})

test('requests at the same time keep their headers, which repeat', async () => {
  const client = connect(url)
  const names = Array.from({ length: 100 }, (_, index) => `name-${index % 7}`)
  const seen = await Promise.all(names.map((name) => ask(client, { ':authority': `a|${name}`, 'x-name': name })))
  expect(seen.map((headers) => headers['x-name'])).toEqual(names)
  client.close()
})

/** What an HTTP/2 client sends first, and a request whose headers are in these frames. */
const requestOf = (...blocks: readonly Buffer[]): Buffer => {
  const frames = blocks.map((block, index) => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(block.length, 0, 3)
    head[3] = index === 0 ? 1 : 9
    head[4] = index === blocks.length - 1 ? 4 : 0
    head.writeUInt32BE(1, 5)
    return Buffer.concat([head, block])
  })
  return Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), ...frames])
}
/** A header `x` of 4,000 bytes that enters the table, and its entry so many times more. */
const repeated = (times: number): Buffer =>
  Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 'v'), Buffer.alloc(times, 0xbe)])

test.each([
  { name: 'an entry of the table named again and again', request: requestOf(repeated(16_000)) },
  { name: 'more bytes than 64 KiB', request: requestOf(repeated(20)) },
  { name: 'more than 128 headers', request: requestOf(Buffer.alloc(129, 0x82)) },
  { name: 'frames without end', request: requestOf(...Array<Buffer>(100).fill(Buffer.alloc(0))) },
])('headers that would take too much memory end the connection: $name', ({ request }) => {
  expect(() => createAuthorityFilter()(request)).toThrow('too many headers')
})

test('headers of up to 64 KiB and 128 of them pass', () => {
  expect(createAuthorityFilter()(requestOf(repeated(12))).length).toBeGreaterThan(52_000)
  expect(createAuthorityFilter()(requestOf(Buffer.alloc(128, 0x82))).length).toBeGreaterThan(128)
})

test('what is no HTTP/2 throws or passes, in any pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 20 }), (chunks) => {
      const filter = createAuthorityFilter()
      try {
        for (const chunk of chunks) expect(Buffer.isBuffer(filter(Buffer.from(chunk)))).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
      }
    }),
  )
})
