import { once } from 'node:events'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import type { ListenAddress } from '../../../src/extproc/listener.ts'
import { eventually } from '../../support/eventually.ts'
import { field } from '../../unit/extproc/protobuf-bytes.ts'
import { paths, portOf, requestProcess, useFixture } from './extproc-fixture.ts'
import type { RawClient } from './raw-client.ts'

const { cleanups, start } = useFixture()

const opened = async (address: ListenAddress): Promise<Socket> => {
  const socket = connect(portOf(address), '127.0.0.1').on('error', () => {})
  cleanups.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const isAnswered = async (client: RawClient): Promise<boolean> => {
  const call = client.call(paths.check)
  call.stream.end(field(1, ''))
  return (await call.messages(1)).length === 1
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

const type = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, continuation: 9 } as const

const frame = (kind: number, flags: number, streamId: number, payload = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(kind, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

/** Opens a stream of ext_proc. No header is indexed. */
const request = (streamId: number): Buffer => {
  const literal = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
  const path = Buffer.concat([Buffer.from([0x01]), literal('host'), Buffer.from([0x04]), literal(paths.process)])
  const contentType = Buffer.concat([Buffer.from([0x0f, 0x10]), literal('application/grpc')])
  return frame(type.headers, 4, streamId, Buffer.concat([Buffer.from([0x83, 0x86]), path, contentType]))
}

describe('connections', () => {
  test('more silent ones than are held cost other clients nothing', async () => {
    const { address, client } = await start()
    expect(await isAnswered(client)).toBe(true)
    const silent: Socket[] = []
    for (let count = 0; count < 1_100; count += 1) silent.push((await opened(address)).resume())
    await eventually(() => silent.filter((socket) => socket.closed).length >= 76)
    expect(await isAnswered(client)).toBe(true)

    const latest = silent.at(-1)
    latest?.write(Buffer.concat([Buffer.from(preface), frame(type.settings, 0, 0)]))
    const [settings] = latest === undefined ? [] : await once(latest, 'data')
    expect(settings?.[3]).toBe(type.settings)
  })

  // By default Node.js ends a connection above 1,000 resets at once.
  test('1,500 clients that leave at once end no other stream of their connection', async () => {
    const { address, log } = await start()
    const session = connectHttp2(`http://127.0.0.1:${portOf(address)}`)
    cleanups.push(() => session.destroy())
    const staying = requestProcess(session)
    const leaving = Array.from({ length: 1_500 }, () => requestProcess(session))
    await log.noted('opened', 1_501)
    const closed = leaving.map((stream) => once(stream, 'close'))
    for (const stream of leaving) stream.close(constants.NGHTTP2_CANCEL)
    await Promise.all(closed)
    await log.noted('closed', 1_500)
    const pinged = new Promise((resolve) => session.ping((error) => resolve(error)))
    expect(await pinged).toBeNull()
    expect([staying.closed, session.closed, session.destroyed]).toEqual([false, false, false])
  })

  test.each([
    { flood: 'PING whose answers are not read', before: [], repeated: frame(type.ping, 0, 0, Buffer.alloc(8)) },
    { flood: 'SETTINGS whose answers are not read', before: [], repeated: frame(type.settings, 0, 0) },
    { flood: 'empty DATA', before: [request(1)], repeated: frame(type.data, 0, 1) },
    {
      flood: 'CONTINUATION',
      before: [frame(type.headers, 0, 1)],
      repeated: frame(type.continuation, 0, 1),
    },
  ])('a flood of $flood ends its connection alone', async ({ before, repeated }) => {
    const { address, client } = await start()
    expect(await isAnswered(client)).toBe(true)
    const socket = await opened(address)
    // With or without an error of a write.
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.pause()
    socket.write(Buffer.concat([Buffer.from(preface), frame(type.settings, 0, 0), ...before]))
    const many = Buffer.concat(Array.from({ length: 5_000 }, () => repeated))
    const flood = (): void => {
      if (!socket.destroyed) socket.write(many, () => setImmediate(flood))
    }
    flood()
    await closed
    expect(await isAnswered(client)).toBe(true)
  })
})
