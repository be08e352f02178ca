import { once } from 'node:events'
import { link, lstat, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { describe, expect, jest, test } from '@jest/globals'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { eventually } from '../../support/eventually.ts'
import { field, struct } from '../../unit/extproc/protobuf-bytes.ts'
import { createEventLog } from './event-log.ts'
import {
  buffered,
  type Fixture,
  paths,
  portOf,
  requestBody,
  requestHeaders,
  requestProcess,
  useFixture,
} from './extproc-fixture.ts'
import type { RawClient } from './raw-client.ts'

const { cleanups, connect, prepare, start, startHolding } = useFixture()

describe('ext_proc', () => {
  test('a stream gets its decision, and ends once Envoy has half closed it', async () => {
    const { client, log } = await start()
    const call = client.call(paths.process)
    call.stream.write(requestHeaders())
    const [reply] = await call.messages(1)
    expect(reply?.toString('hex')).toBe(
      Buffer.concat([
        field(1, field(1)),
        field(8, struct({ 'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' } })),
      ]).toString('hex'),
    )
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    await log.noted('closed')
    expect(log.events).toEqual(['opened', 'replied to request_headers', 'closed'])
  })

  test('a connection takes 16 MiB before any of it is read, so that no body holds up other streams', async () => {
    const { address } = await start()
    const session = connectHttp2(`http://127.0.0.1:${portOf(address)}`)
    cleanups.push(() => session.destroy())
    await eventually(async () => expect(session.state.remoteWindowSize).toBe(16 * 1024 * 1024))
  })

  test('requests that wait hold no bodies that were read', async () => {
    const [count, bytes] = [80, 100_000]
    const length = field(1, field(1, 'content-length'), field(3, String(bytes)))
    const log = createEventLog()
    const never = new Promise<never>(() => {})
    const decide = (): Promise<never> => {
      log.note('read')
      return never
    }
    const { address } = await start({ onHeaders: async () => ({ kind: 'need-body', decide }) }, undefined, log)
    // The client of grpc-js holds what it sends, too.
    const session = connectHttp2(`http://127.0.0.1:${portOf(address)}`, { maxSessionMemory: 100 })
    cleanups.push(() => session.destroy())
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    for (let index = 0; index < count; index += 1) {
      const stream = requestProcess(session).on('error', () => {})
      for (const message of [Buffer.concat([field(2, field(1, length)), buffered]), requestBody(Buffer.alloc(bytes))]) {
        const head = Buffer.alloc(5)
        head.writeUInt32BE(message.length, 1)
        stream.write(Buffer.concat([head, message]))
      }
    }
    await log.noted('read', count)
    await eventually(() => {
      collectGarbage()
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((count * bytes) / 3)
    })
  })

  test('a body as large as Envoy sends passes the transport, and is answered 413', async () => {
    const decide = () => Promise.reject(new Error('the body is too large to be decided on'))
    const { client } = await start({ onHeaders: async () => ({ kind: 'need-body', decide }) })
    const call = client.call(paths.process)
    call.stream.write(requestHeaders(buffered))
    await call.messages(1)
    call.stream.write(requestBody(Buffer.alloc(16_777_216)))
    const [, reply] = await call.messages(2)
    expect(String(reply)).toContain('request_too_large')
  })

  test.each([
    { name: 'garbage', bytes: Buffer.from([0x12, 0x7f, 0x00]), code: status.INTERNAL },
    { name: 'a message above every limit', bytes: Buffer.alloc(17_000_000), code: status.RESOURCE_EXHAUSTED },
  ])('$name ends its stream with an error', async ({ bytes, code }) => {
    const { client } = await start()
    const call = client.call(paths.process)
    call.stream.write(bytes)
    await expect(call.status).resolves.toMatchObject({ code })
    expect(call.received).toEqual([])
  })

  test('a client that disconnects aborts the decision, and the stream never ends with OK', async () => {
    const { ask, log } = await startHolding()
    const call = await ask(paths.process, requestHeaders())
    call.stream.end()
    await log.noted('aborted')
    await expect(call.status).resolves.toMatchObject({ code: status.CANCELLED })
  })

  test('a drain waits for a decision, and cuts no stream when that takes minutes', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance', 'Date', 'hrtime'] })
    try {
      const { ask, finish, server } = await startHolding()
      const call = await ask(paths.process, requestHeaders())
      const drained = server.drain(600_000)
      await jest.advanceTimersByTimeAsync(300_000)
      finish()
      expect(await call.messages(1)).toHaveLength(1)
      call.stream.end()
      await expect(call.status).resolves.toMatchObject({ code: status.OK })
      await drained
    } finally {
      jest.useRealTimers()
    }
  })

  test('a drain accepts no new connection', async () => {
    const { address, ask, server } = await startHolding()
    const call = await ask(paths.process, requestHeaders())
    const drained = server.drain(60_000)
    await expect(connect(address).call(paths.process).status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    call.stream.end()
    await drained
  })

  test.each([
    { name: 'a drain at its deadline', end: (server: Fixture['server']) => server.drain(1) },
    { name: 'a stop, also a second one', end: (server: Fixture['server']) => server.stop().then(() => server.stop()) },
  ])('$name ends open streams with an error', async ({ end }) => {
    const { ask, log, server } = await startHolding()
    const call = await ask(paths.process, requestHeaders())
    await end(server)
    const { code } = await call.status
    expect(code).not.toBe(status.OK)
    await log.noted('aborted')
  })

  test('a stop closes connections without a stream', async () => {
    const { server, address } = await start()
    const socket = connectSocket({ host: '127.0.0.1', port: portOf(address) })
    await once(socket, 'connect')
    socket.resume()
    const closed = once(socket, 'close')
    await server.stop()
    await closed
  })

  test('a server that was never started can be stopped', async () => {
    await expect(prepare().server.stop()).resolves.toBeUndefined()
  })
})

describe('addresses', () => {
  const socketPath = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'extproc-'))
    cleanups.push(() => rm(folder, { recursive: true }))
    return join(folder, 'rpc.sock')
  }
  const expectAnswer = async (client: RawClient): Promise<void> => {
    const call = client.call(paths.check)
    call.stream.end(field(1, 'liveness'))
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  }
  /** A socket file whose server is gone. A close would remove the file, so it gets a second name first. */
  const leaveSocketBehind = async (path: string): Promise<void> => {
    const server = createServer()
    server.listen(`${path}.first`)
    await once(server, 'listening')
    await link(`${path}.first`, path)
    server.close()
    await once(server, 'close')
  }

  test('a port in use is refused', async () => {
    const { address } = await start()
    await expect(prepare({}, address).server.start()).rejects.toThrow()
  })

  test('a Unix socket serves, and is removed by the stop', async () => {
    const path = await socketPath()
    const { client, server } = await start({}, { socketPath: path })
    await expectAnswer(client)
    await server.stop()
    await expect(lstat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a Unix socket left by a killed process is replaced', async () => {
    const path = await socketPath()
    await leaveSocketBehind(path)
    const { client } = await start({}, { socketPath: path })
    await expectAnswer(client)
  })

  test('a Unix socket in use is refused, and its server keeps it', async () => {
    const path = await socketPath()
    const { client } = await start({}, { socketPath: path })
    await expect(prepare({}, { socketPath: path }).server.start()).rejects.toThrow()
    await expectAnswer(client)
  })

  test('a file that is not a socket is refused and kept', async () => {
    const path = await socketPath()
    await writeFile(path, 'precious')
    await expect(prepare({}, { socketPath: path }).server.start()).rejects.toThrow()
    expect(await readFile(path, 'utf8')).toBe('precious')
  })
})
