import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { Duplex } from 'node:stream'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createHttp2Server } from '../../../src/extproc/http2/create-http2-server.ts'
import { FrameReader } from '../../../src/extproc/http2/frame-reader.ts'
import { HpackDecoder } from '../../../src/extproc/http2/hpack/hpack-decoder.ts'
import { MessageReader } from '../../../src/extproc/http2/message-reader.ts'
import type { ListenAddress, RpcServer } from '../../../src/extproc/transport.ts'
import { block, callHeaders, flag, frame, message, openWire, preface, type } from '../../contract/extproc/http2-wire.ts'
import { createSeamLog, createSeamMethods, pathOf } from '../../contract/extproc/seam-methods.ts'

const log = createSeamLog()
let server: RpcServer
let address: ListenAddress
const faults: unknown[] = []

beforeAll(async () => {
  server = createHttp2Server({
    listen: { host: '127.0.0.1', port: 0 },
    methods: createSeamMethods(log).filter(({ path }) => path !== pathOf('Flood') && path !== pathOf('Throw')),
    maxMessageBytes: 10_000,
    maxConcurrentStreams: 100,
    onFault: (error) => faults.push(error),
  })
  address = await server.start()
})
afterAll(() => server.stop())

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

/** Cuts bytes at these places. */
const cut = (whole: Buffer, places: readonly number[]): readonly Buffer[] => {
  const cuts = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((one, other) => one - other)
  return [0, ...cuts].map((from, index) => whole.subarray(from, cuts[index]))
}

test('frames are the same however they are cut', () => {
  const anyFrame = fc.record({ kind: fc.nat(12), flags: fc.nat(255), id: fc.nat(2 ** 31 - 1), payload: bytes(50) })
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 10 }), fc.array(fc.nat(), { maxLength: 20 }), (frames, places) => {
      const seen: object[] = []
      const reader = new FrameReader((kind, flags, id, payload) => seen.push({ kind, flags, id, payload }) > 0)
      const wire = Buffer.concat([
        preface,
        ...frames.map(({ kind, flags, id, payload }) => frame(kind, flags, id, payload)),
      ])
      for (const piece of cut(wire, places)) expect(reader.read(piece)).toBeUndefined()
      expect(seen).toEqual(frames)
    }),
    { numRuns: 2000 },
  )
})

test('messages are the same however they are cut', () => {
  fc.assert(
    fc.property(fc.array(bytes(300), { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 20 }), (messages, places) => {
      const seen: Buffer[] = []
      const reader = new MessageReader(300, (content) => seen.push(content) > 0)
      for (const piece of cut(Buffer.concat(messages.map((content) => message(content))), places)) reader.read(piece)
      expect(seen.map((content) => content.toString('hex'))).toEqual(messages.map((content) => content.toString('hex')))
      expect(reader.unfinished).toBe(false)
    }),
    { numRuns: 2000 },
  )
})

/** What Node's own HTTP/2 writes for these requests. */
const headerBlocks = async (requests: readonly Readonly<Record<string, string>>[]): Promise<readonly Buffer[]> => {
  const written: Buffer[] = []
  const pipe = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk)
      done()
    },
  })
  const client = connectHttp2('http://localhost', { createConnection: () => pipe })
  client.on('error', () => {})
  await once(client, 'connect')
  for (const headers of requests) client.request(headers, { endStream: true }).on('error', () => {})
  const blocks: Buffer[] = []
  while (blocks.length < requests.length) {
    await new Promise(setImmediate)
    blocks.length = 0
    const reader = new FrameReader((kind, _flags, _id, payload) => {
      if (kind === type.headers) blocks.push(payload.subarray(5 * Number((_flags & 0x20) !== 0)))
      return true
    })
    reader.read(Buffer.concat(written))
  }
  client.destroy()
  return blocks
}

test('what another implementation encodes is read to the letter, request after request', async () => {
  const name = fc.stringMatching(/^x-[a-z0-9-]{1,12}$/)
  const value = fc.oneof(
    fc.stringMatching(/^[!-~]{0,60}$/),
    bytes(30).map((raw) => raw.toString('hex')),
  )
  const latin1 = fc.stringMatching(/^[\u00a1-\u00ff]{1,20}$/)
  const anyHeaders = fc.dictionary(name, fc.oneof(value, latin1), { maxKeys: 8, noNullPrototype: true })
  await fc.assert(
    fc.asyncProperty(fc.array(anyHeaders, { minLength: 1, maxLength: 40 }), async (requests) => {
      const decoder = new HpackDecoder()
      const blocks = await headerBlocks(requests)
      const read = blocks.map((encoded) => {
        const fields: Record<string, string> = {}
        expect(decoder.decode(encoded, (field) => (fields[field.name] = field.value))).toBe(true)
        return Object.fromEntries(Object.entries(fields).filter(([key]) => key.startsWith('x-')))
      })
      expect(read).toEqual(requests)
    }),
    { numRuns: 150 },
  )
})

test('any block of headers is read or refused', () => {
  fc.assert(
    fc.property(fc.array(bytes(60), { maxLength: 10 }), (blocks) => {
      const decoder = new HpackDecoder()
      for (const encoded of blocks) {
        let textBytes = 0
        const whole = decoder.decode(encoded, ({ name, value }) => (textBytes += name.length + value.length))
        expect(typeof whole).toBe('boolean')
        expect(textBytes).toBeLessThanOrEqual(encoded.length * 4096)
      }
    }),
    { numRuns: 5000 },
  )
})

const paths = ['Echo', 'Hold', 'AnswerAtEnd', 'Fail', 'BadDecode', 'Nothing'].map(pathOf)
const anyId = fc.constantFrom(0, 1, 1, 1, 3, 3, 5, 2, 2 ** 31 - 1)
const anyPiece = fc.oneof(
  fc
    .tuple(anyId, fc.constantFrom(...paths), fc.boolean())
    .map(([id, path, last]) =>
      frame(type.headers, flag.endHeaders | (last ? flag.endStream : 0), id, block(callHeaders(path))),
    ),
  fc
    .tuple(anyId, bytes(40), fc.boolean())
    .map(([id, content, last]) => frame(type.data, Number(last), id, message(content))),
  fc
    .tuple(fc.nat(10), fc.nat(255), anyId, bytes(20))
    .map(([kind, flags, id, payload]) => frame(kind, flags, id, payload)),
  fc
    .tuple(fc.constantFrom(type.reset, type.windowUpdate), anyId, fc.constantFrom(0, 1, 70_000, 2 ** 31 - 1))
    .map(([kind, id, value]) => {
      const payload = Buffer.alloc(4)
      payload.writeUInt32BE(value)
      return frame(kind, 0, id, payload)
    }),
  fc.constant(frame(type.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 9]))),
  bytes(30),
)

test('whatever a client says, every call is closed once, and the next client is served', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyPiece, { maxLength: 25 }), async (pieces) => {
      const before = log.events.filter((event) => event === 'hold closed').length
      const wire = await openWire(address)
      wire.send(...pieces)
      wire.socket.end()
      await wire.closed
      const next = await openWire(address)
      next.send(
        frame(type.headers, flag.endHeaders, 1, block(callHeaders(pathOf('Echo')))),
        frame(type.data, flag.endStream, 1, message('served')),
      )
      const answer = await next.frame(({ kind }) => kind === type.data)
      next.socket.destroy()
      expect(answer.payload).toEqual(message('served'))
      expect(log.events.filter((event) => event === 'hold closed').length - before).toBeLessThanOrEqual(3)
    }),
    { numRuns: 400 },
  )
  expect(faults.every((fault) => (fault as Error).message === 'encode failed')).toBe(true)
}, 120_000)
