import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { Client, credentials } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { field } from '../../unit/extproc/protobuf-bytes.ts'
import { metric } from '../support/metrics.ts'
import { create } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

/** Several times what a gateway holds that has served as much in good order. */
const maxResidentBytes = 600 * 1024 * 1024

const { stack } = useScriptedStack()

const address = (): { readonly host: string; readonly port: number } => {
  const [host = '', port] = stack.gateway().extproc.split(':')
  return { host, port: Number(port) }
}

const residentBytes = async (): Promise<number> => {
  const text = await readFile(`/proc/${stack.gateway().child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(text)?.[1]) * 1024
}

/** What must be true after anything. */
const expectServing = async (): Promise<void> => {
  // On a busy machine, reading all of this may take longer than a health check: Envoy answers 503 until the next one.
  const response = await eventually(async () => {
    const tried = await create(stack, { body: { model: 'scripted', prompt: 'hello' } })
    expect(tried.status).toBe(200)
    return tried
  })
  expect(response.headers.get('x-session-id')).toMatch(/^ctx_/)
  expect(stack.gateway().child.isRunning()).toBe(true)
  expect(await residentBytes()).toBeLessThan(maxResidentBytes)
}

/** Writes bytes to the port; resolves when they are written or the connection is closed. */
const write = (bytes: Buffer): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect(address())
    socket.on('error', () => undefined)
    socket.once('close', () => resolve(socket))
    socket.resume()
    socket.write(bytes, () => resolve(socket))
  })

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** An HTTP/2 frame whose header may lie about its length. */
const frame = (type: number, flags: number, stream: number, payload = Buffer.alloc(0), length = payload.length) => {
  const header = Buffer.alloc(9)
  header.writeUIntBE(length, 0, 3)
  header.writeUInt8(type, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}
const settings = frame(4, 0, 0)
const begin = Buffer.concat([preface, settings])
const repeated = (count: number, piece: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => piece))

describe('the gateway goes on serving after bytes that are no gRPC:', () => {
  test.each([
    { what: 'nothing', bytes: () => Buffer.alloc(0) },
    { what: 'noise', bytes: () => randomBytes(1_000_000) },
    { what: 'an HTTP/1.1 request', bytes: () => Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n') },
    {
      what: 'a TLS handshake',
      bytes: () => Buffer.concat([Buffer.from('1603010200010001fc0303', 'hex'), randomBytes(508)]),
    },
    { what: 'half a preface', bytes: () => preface.subarray(0, 10) },
    { what: 'noise after the preface', bytes: () => Buffer.concat([begin, randomBytes(1_000_000)]) },
    {
      what: 'a frame longer than any may be',
      bytes: () => Buffer.concat([begin, frame(0, 0, 1, randomBytes(100_000), 0xffffff)]),
    },
    {
      what: 'data of a stream that never began',
      bytes: () => Buffer.concat([begin, frame(0, 1, 77, randomBytes(1000))]),
    },
    { what: 'headers that cannot be read', bytes: () => Buffer.concat([begin, frame(1, 4, 1, randomBytes(2000))]) },
    {
      what: 'headers that never end',
      bytes: () =>
        Buffer.concat([begin, frame(1, 0, 1, randomBytes(100)), repeated(1000, frame(9, 0, 1, randomBytes(1000)))]),
    },
    { what: 'a flood of settings', bytes: () => Buffer.concat([begin, repeated(50_000, settings)]) },
    {
      what: 'a flood of pings',
      bytes: () => Buffer.concat([begin, repeated(50_000, frame(6, 0, 0, Buffer.alloc(8)))]),
    },
    { what: 'a flood of empty data', bytes: () => Buffer.concat([begin, repeated(50_000, frame(0, 0, 1))]) },
  ])('$what', async ({ bytes }) => {
    const socket = await write(bytes())

    await expectServing()

    socket.destroy()
  })

  test('five hundred connections that say nothing', async () => {
    const sockets = Array.from({ length: 500 }, () => connect(address()).on('error', () => undefined))

    await expectServing()

    for (const socket of sockets) socket.destroy()
  })

  test('streams that are reset as soon as they are opened', async () => {
    const session = connectHttp2(`http://${stack.gateway().extproc}`)
    session.on('error', () => undefined)
    for (let count = 0; count < 5_000 && !session.destroyed; count += 1) {
      const stream = session.request({ ':method': 'POST', ':path': processPath, 'content-type': 'application/grpc' })
      stream.on('error', () => undefined)
      stream.close(constants.NGHTTP2_CANCEL)
    }

    await expectServing()

    session.destroy()
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(0))
  })
})

const processPath = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'

const header = (name: string, value: string): Buffer => field(1, field(1, name), field(3, value))
const headers = field(
  2,
  field(1, header(':method', 'POST'), header(':path', '/v1/completions'), header('x-session-id', 'ctx_no-such-one')),
)

describe('the gateway goes on serving after a client that speaks the protocol, but not as Envoy does:', () => {
  const open = (client: Client) =>
    client
      .makeBidiStreamRequest(
        processPath,
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
      )
      .on('error', () => undefined)

  test('ten thousand messages that wait for no answer, and end their stream', async () => {
    const client = new Client(stack.gateway().extproc, credentials.createInsecure())
    const call = open(client)
    const ended = once(call.resume(), 'status')

    call.write(headers)
    for (let count = 0; count < 10_000; count += 1) call.write(field(4, field(1, 'x')))
    call.end()

    await ended
    client.close()
    await expectServing()
  })

  test('two thousand streams that never send a message', async () => {
    const client = new Client(stack.gateway().extproc, credentials.createInsecure())
    const calls = Array.from({ length: 2_000 }, () => open(client))
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(2_000))

    await expectServing()

    for (const call of calls) call.cancel()
    client.close()
    await eventually(async () => expect(await metric(stack, 'ext_proc_streams_active')).toBe(0))
  })
})
