import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createHttp2Server, type Http2ServerOptions } from '../../../src/extproc/http2/create-http2-server.ts'
import type { ListenAddress, RpcServer } from '../../../src/extproc/transport.ts'
import {
  block,
  callHeaders,
  flag,
  frame,
  message,
  openWire,
  preface,
  setting,
  type,
  uint32,
  type WireClient,
} from './http2-wire.ts'
import { createSeamLog, createSeamMethods, pathOf, type SeamLog } from './seam-methods.ts'
import { describeRpcTransport } from './transport-suite.ts'

describeRpcTransport('http2', createHttp2Server)

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Bench {
  readonly server: RpcServer
  readonly address: ListenAddress
  readonly log: SeamLog
}

const start = async (options: Partial<Http2ServerOptions> = {}): Promise<Bench> => {
  const log = createSeamLog()
  const server = createHttp2Server({
    listen: { host: '127.0.0.1', port: 0 },
    methods: createSeamMethods(log),
    maxMessageBytes: 1_000_000,
    maxConcurrentStreams: 10_000,
    onFault: () => {},
    ...options,
  })
  cleanups.push(() => server.stop())
  return { server, log, address: await server.start() }
}

const open = async (bench: Bench, options: Parameters<typeof openWire>[1] = {}): Promise<WireClient> => {
  const wire = await openWire(bench.address, options)
  cleanups.push(() => wire.socket.destroy())
  return wire
}

const headers = (id: number, fields: Readonly<Record<string, string>>, last = false): Buffer =>
  frame(type.headers, flag.endHeaders | (last ? flag.endStream : 0), id, block(fields))

const data = (id: number, payload: Buffer, last = false): Buffer =>
  frame(type.data, last ? flag.endStream : 0, id, payload)

const echoCall = (id: number, text: string): Buffer =>
  Buffer.concat([headers(id, callHeaders(pathOf('Echo'))), data(id, message(text), true)])

/** The text of the headers that ended a stream. */
const endOf = async (wire: WireClient, id: number): Promise<string> => {
  const last = await wire.frame(
    (seen) => seen.id === id && seen.kind === type.headers && (seen.flags & flag.endStream) !== 0,
  )
  return last.payload.toString('latin1')
}

const resetOf = async (wire: WireClient, id: number): Promise<number> =>
  (await wire.frame((seen) => seen.id === id && seen.kind === type.reset)).payload.readUInt32BE()

const goaway = async (wire: WireClient, code: number): Promise<number> =>
  (
    await wire.frame(({ kind, payload }) => kind === type.goaway && payload.readUInt32BE(4) === code)
  ).payload.readUInt32BE()

/** HPACK's literals as they stand in trailers. */
const status = (code: number): string => `\x0bgrpc-status${String.fromCharCode(String(code).length)}${code}`

const ok = 0
const deadlineExceeded = 4
const resourceExhausted = 8
const unimplemented = 12
const internal = 13
const refusedStream = 7
const enhanceYourCalm = 11

describe('http2: streams that are reset', () => {
  test('a hundred thousand of them end nothing but themselves', async () => {
    const bench = await start()
    const wire = await open(bench)
    const storm = 100_000
    const path = callHeaders(pathOf('Hold'))
    for (let first = 0; first < storm; first += 1000) {
      const batch: Buffer[] = []
      for (let index = first; index < first + 1000; index++) {
        batch.push(headers(2 * index + 1, path), frame(type.reset, 0, 2 * index + 1, uint32(8)))
      }
      wire.send(...batch)
      await wire.settled()
    }
    wire.send(echoCall(2 * storm + 1, 'still there'))
    await expect(endOf(wire, 2 * storm + 1)).resolves.toContain(status(ok))
    expect(wire.seen.filter(({ kind }) => kind === type.goaway || kind === type.reset)).toEqual([])
    expect(bench.log.events.filter((event) => event === 'hold closed')).toHaveLength(storm)
  })

  test('an answer that was taken before the reset is whole', async () => {
    const bench = await start()
    const wire = await open(bench)
    for (let id = 1; id < 6000; id += 2) {
      wire.send(headers(id, callHeaders(pathOf('Echo'))), data(id, message('x')))
      await wire.frame((seen) => seen.id === id && seen.kind === type.data)
      wire.send(frame(type.reset, 0, id, uint32(8)))
    }
    await wire.settled()
    expect(wire.seen.filter(({ kind }) => kind === type.goaway || kind === type.reset)).toEqual([])
  })

  test('data and the end that cross a reset of ours are passed over', async () => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(headers(1, callHeaders(pathOf('Fail'))), data(1, message('internal')))
    await expect(resetOf(wire, 1)).resolves.toBe(ok)
    wire.send(data(1, message('late')), data(1, Buffer.alloc(0), true))
    wire.send(echoCall(3, 'x'))
    await expect(endOf(wire, 3)).resolves.toContain(status(ok))
    expect(wire.seen.filter(({ kind }) => kind === type.reset)).toHaveLength(1)
  })
})

describe('http2: what comes in', () => {
  test('a call of single bytes is answered like any other', async () => {
    const bench = await start()
    const wire = await open(bench, { begin: false })
    wire.socket.setNoDelay(true)
    for (const byte of Buffer.concat([preface, frame(type.settings, 0, 0), echoCall(1, 'bytewise')])) {
      await new Promise<void>((resolve) => wire.socket.write(Buffer.from([byte]), () => resolve()))
    }
    const answer = await wire.frame(({ kind }) => kind === type.data)
    expect(answer.payload).toEqual(message('bytewise'))
  })

  test('a message over many frames, and many messages in one', async () => {
    const bench = await start()
    const wire = await open(bench)
    const long = Buffer.alloc(100_000, 'long')
    const bytes = Buffer.concat([message('a'), message(''), message(long), message('b')])
    wire.send(headers(1, callHeaders(pathOf('Echo'))))
    wire.send(frame(type.windowUpdate, 0, 0, uint32(1_000_000)), frame(type.windowUpdate, 0, 1, uint32(1_000_000)))
    for (let at = 0; at < bytes.length; at += 9999) wire.send(data(1, bytes.subarray(at, at + 9999)))
    wire.send(data(1, Buffer.alloc(0), true))
    await endOf(wire, 1)
    const answer = Buffer.concat(wire.seen.filter(({ kind }) => kind === type.data).map(({ payload }) => payload))
    expect(answer.equals(bytes)).toBe(true)
  })

  test.each([
    ['a compressed message', {}, message('x', 1), unimplemented],
    ['a compressed call', { 'grpc-encoding': 'gzip' }, message('x'), unimplemented],
    ['a timeout that cannot be read', { 'grpc-timeout': 'soon' }, message('x'), internal],
    ['half a message', {}, message('abc').subarray(0, 6), internal],
    ['half a prefix', {}, message('abc').subarray(0, 3), internal],
    ['a message that claims to be huge', {}, Buffer.concat([Buffer.from([0]), uint32(0xffffffff)]), resourceExhausted],
    [
      'more headers than allowed',
      Object.fromEntries(Array.from({ length: 3 }, (_, index) => [`x-${index}`, 'v'.repeat(4000)])),
      message('x'),
      ok,
    ],
    ['an encoding that is none', { 'grpc-encoding': 'identity' }, message('x'), ok],
    ['a timeout that is far', { 'grpc-timeout': '99999999H' }, message('x'), ok],
  ])('%s', async (_name, more, bytes, expected) => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(headers(1, { ...callHeaders(pathOf('Echo')), ...more }), data(1, bytes, true))
    await expect(endOf(wire, 1)).resolves.toContain(status(expected))
    wire.send(echoCall(3, 'y'))
    await expect(endOf(wire, 3)).resolves.toContain(status(ok))
  })

  test.each([
    ['a page', { ':method': 'GET', ':scheme': 'http', ':path': '/' }, '405'],
    ['a form', { ':method': 'POST', ':scheme': 'http', ':path': '/', 'content-type': 'text/plain' }, '415'],
    ['nearly gRPC', { ...callHeaders(pathOf('Echo')), 'content-type': 'application/grpcx' }, '415'],
  ])('%s is answered as HTTP has it', async (_name, fields, expected) => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(headers(1, fields), data(1, Buffer.from('anything'), true))
    const answer = await wire.frame(({ kind }) => kind === type.headers)
    expect(answer.payload.toString('latin1')).toContain(expected)
    await wire.frame(({ kind, flags }) => kind === type.data && flags === flag.endStream)
  })

  test('headers above the limit are refused, and the connection lives on', async () => {
    const bench = await start()
    const wire = await open(bench)
    const large = block({ ...callHeaders(pathOf('Echo')), 'x-large': 'v'.repeat(80_000) })
    wire.send(frame(type.headers, flag.endStream, 1, large.subarray(0, 16_384)))
    for (let at = 16_384; at < large.length; at += 16_384) {
      const end = at + 16_384 >= large.length ? flag.endHeaders : 0
      wire.send(frame(type.continuation, end, 1, large.subarray(at, at + 16_384)))
    }
    await expect(endOf(wire, 1)).resolves.toContain(status(resourceExhausted))
    wire.send(echoCall(3, 'y'))
    await expect(endOf(wire, 3)).resolves.toContain(status(ok))
  })

  test.each([
    ['of empty frames', 0],
    ['of full frames', 16_384],
  ])('headers without end, %s, end the connection', async (_name, bytes) => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(frame(type.headers, 0, 1))
    for (let count = 0; count < 200; count++) wire.send(frame(type.continuation, 0, 1, Buffer.alloc(bytes)))
    await expect(goaway(wire, enhanceYourCalm)).resolves.toBe(0)
    await wire.closed
  })

  test('streams above the limit are refused, and served once there is room', async () => {
    const bench = await start({ maxConcurrentStreams: 2 })
    const wire = await open(bench)
    for (const id of [1, 3, 5]) wire.send(headers(id, callHeaders(pathOf('Hold'))))
    await expect(resetOf(wire, 5)).resolves.toBe(refusedStream)
    wire.send(frame(type.reset, 0, 1, uint32(8)), echoCall(7, 'x'))
    await expect(endOf(wire, 7)).resolves.toContain(status(ok))
  })

  test('a client of twenty thousand calls waits for room by itself', async () => {
    const bench = await start({ maxConcurrentStreams: 100 })
    const { port } = bench.address as { readonly port: number }
    const client = connectHttp2(`http://127.0.0.1:${port}`)
    cleanups.push(() => client.destroy())
    await once(client, 'remoteSettings')
    const call = async (): Promise<unknown> => {
      const stream = client.request(callHeaders(pathOf('Echo')))
      stream.end(message('x'))
      stream.resume()
      const [trailers] = await once(stream, 'trailers')
      return trailers['grpc-status']
    }
    for (let round = 0; round < 10; round++) {
      const statuses = await Promise.all(Array.from({ length: 500 }, call))
      expect(new Set(statuses)).toEqual(new Set(['0']))
    }
  })
})

describe('http2: time', () => {
  test('a call ends at its deadline', async () => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(headers(1, { ...callHeaders(pathOf('Hold')), 'grpc-timeout': '1m' }))
    await expect(endOf(wire, 1)).resolves.toContain(status(deadlineExceeded))
    await bench.log.noted('hold closed')
  })

  const hasty = { keepalive: { idleMs: 20, timeoutMs: 200 } }

  test('a client that is silent is asked, and given up when it does not answer', async () => {
    const bench = await start(hasty)
    const wire = await open(bench)
    wire.send(headers(1, callHeaders(pathOf('Hold'))))
    await wire.frame(({ kind, flags }) => kind === type.ping && flags === 0)
    await wire.closed
    await bench.log.noted('hold closed')
  })

  test('a client that answers stays', async () => {
    const bench = await start(hasty)
    const wire = await open(bench)
    for (let asked = 0; asked < 4; asked++) {
      const pings = (): number => wire.seen.filter(({ kind, flags }) => kind === type.ping && flags === 0).length
      const ping = await wire.frame(({ kind, flags }) => kind === type.ping && flags === 0 && pings() > asked)
      wire.send(frame(type.ping, flag.ack, 0, ping.payload))
    }
    wire.send(echoCall(1, 'x'))
    await expect(endOf(wire, 1)).resolves.toContain(status(ok))
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['half a preface', preface.subarray(0, 12)],
    ['no settings', preface],
  ])('a client that begins with %s is given up', async (_name, bytes) => {
    const bench = await start(hasty)
    const wire = await open(bench, { begin: false })
    wire.send(bytes)
    await wire.closed
  })
})

describe('http2: flow control', () => {
  test('a client that takes no answers is not read further than its window', async () => {
    const bench = await start()
    const noWindow = setting(4, 0)
    const wire = await open(bench, { settings: noWindow })
    wire.send(headers(1, callHeaders(pathOf('Echo'))))
    const piece = message(Buffer.alloc(8187))
    for (let count = 0; count < 32; count++) wire.send(data(1, piece))
    await wire.settled()
    const granted = (): boolean => wire.seen.some(({ kind, id }) => kind === type.windowUpdate && id === 1)
    expect(granted()).toBe(false)
    wire.send(frame(type.windowUpdate, 0, 1, uint32(1_000_000)), frame(type.windowUpdate, 0, 0, uint32(1_000_000)))
    await wire.frame(({ kind, id }) => kind === type.windowUpdate && id === 1)
    wire.send(data(1, Buffer.alloc(0), true))
    await endOf(wire, 1)
    const answered = wire.seen
      .filter(({ kind }) => kind === type.data)
      .reduce((sum, { payload }) => sum + payload.length, 0)
    expect(answered).toBe(32 * piece.length)
  })

  test('what clients leave untaken is bounded over all streams of a connection', async () => {
    const bench = await start()
    const wire = await open(bench, { settings: setting(4, 0) })
    const piece = message(Buffer.alloc(16_379))
    const [streams, pieces] = [64, 16]
    for (let id = 1; id < 2 * streams; id += 2) {
      wire.send(headers(id, callHeaders(pathOf('Echo'))))
      for (let count = 0; count < pieces; count++) wire.send(data(id, piece))
    }
    await wire.settled()
    const granted = wire.seen.filter(({ kind, id }) => kind === type.windowUpdate && id === 0)
    expect(granted.map(({ payload }) => payload.readUInt32BE() + 65_535)).toEqual([streams * pieces * piece.length])
    wire.send(headers(999, callHeaders(pathOf('Echo'))), data(999, Buffer.from([0])))
    await goaway(wire, 3)
    await wire.closed
  })

  test('a connection is given room again for what streams took, also for those that were reset', async () => {
    const bench = await start()
    const wire = await open(bench, { settings: setting(4, 0) })
    const piece = message(Buffer.alloc(16_379))
    for (let id = 1; id < 200; id += 2) {
      wire.send(headers(id, callHeaders(pathOf('Echo'))))
      for (let count = 0; count < 16; count++) wire.send(data(id, piece))
      wire.send(frame(type.reset, 0, id, uint32(8)))
    }
    wire.send(headers(999, callHeaders(pathOf('Nothing'))), data(999, Buffer.from([0])))
    await expect(endOf(wire, 999)).resolves.toContain(status(unimplemented))
  })

  test('a client that sends more than it may is reset', async () => {
    const bench = await start()
    const wire = await open(bench, { settings: setting(4, 0) })
    wire.send(headers(1, callHeaders(pathOf('Echo'))))
    const piece = message(Buffer.alloc(16_379))
    for (let count = 0; count < 20; count++) wire.send(data(1, piece))
    await expect(resetOf(wire, 1)).resolves.toBe(3)
  })

  test('a client that reads nothing at all is cut off by a stop', async () => {
    const bench = await start()
    const wire = await open(bench)
    wire.socket.pause()
    wire.send(frame(type.windowUpdate, 0, 0, uint32(2 ** 30)), headers(1, callHeaders(pathOf('Flood'))))
    wire.send(frame(type.windowUpdate, 0, 1, uint32(2 ** 30)), data(1, message('x')))
    const other = await open(bench)
    other.send(echoCall(1, 'x'))
    await endOf(other, 1)
    await bench.server.stop()
    await bench.log.noted('flood closed')
  })
})

describe('http2: the drain', () => {
  test('calls that are on their way are served; later ones can be repeated elsewhere', async () => {
    const bench = await start()
    const wire = await open(bench)
    wire.send(headers(1, callHeaders(pathOf('Hold'))), data(1, message('x')))
    await bench.log.noted('hold x')
    const drained = bench.server.drain(60_000)
    await expect(goaway(wire, 0)).resolves.toBe(2 ** 31 - 1)
    wire.send(echoCall(3, 'on its way'))
    await expect(endOf(wire, 3)).resolves.toContain(status(ok))
    const ping = await wire.frame(({ kind, flags }) => kind === type.ping && flags === 0)
    wire.send(frame(type.ping, flag.ack, 0, ping.payload), echoCall(5, 'late'))
    await expect(resetOf(wire, 5)).resolves.toBe(refusedStream)
    expect(wire.seen.filter(({ kind }) => kind === type.goaway).map(({ payload }) => payload.readUInt32BE())).toEqual([
      2 ** 31 - 1,
      3,
    ])
    wire.send(frame(type.reset, 0, 1, uint32(8)))
    await wire.closed
    await drained
  })

  test('a client that does not answer the drain is cut off at its deadline', async () => {
    const bench = await start()
    const wire = await open(bench)
    await wire.settled()
    await bench.server.drain(1)
    await wire.closed
  })
})
