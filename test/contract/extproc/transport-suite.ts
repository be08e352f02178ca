import { once } from 'node:events'
import { link, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { CreateRpcServer, ListenAddress, RpcServer } from '../../../src/extproc/transport.ts'
import { createCable } from './cable.ts'
import { createRawClient, type RawClient } from './raw-client.ts'
import { createSeamLog, createSeamMethods, pathOf, type SeamLog } from './seam-methods.ts'

const maxMessageBytes = 100_000

interface Bench {
  readonly server: RpcServer
  readonly address: ListenAddress
  readonly client: RawClient
  readonly log: SeamLog
  readonly faults: readonly unknown[]
}

/** What every transport behind the seam must do. */
export const describeRpcTransport = (name: string, createServer: CreateRpcServer): void => {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

  const prepare = (listen: ListenAddress): Omit<Bench, 'address' | 'client'> => {
    const log = createSeamLog()
    const faults: unknown[] = []
    const server = createServer({
      listen,
      methods: createSeamMethods(log),
      maxMessageBytes,
      maxConcurrentStreams: 10_000,
      onFault: (error) => faults.push(error),
    })
    cleanups.push(() => server.stop())
    return { server, log, faults }
  }

  const connectTo = (address: ListenAddress): RawClient => {
    const client = createRawClient(address)
    cleanups.push(() => client.close())
    return client
  }

  const start = async (listen: ListenAddress = { host: '127.0.0.1', port: 0 }): Promise<Bench> => {
    const bench = prepare(listen)
    const address = await bench.server.start()
    return { ...bench, address, client: connectTo(address) }
  }

  const tempFolder = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'rpc-'))
    cleanups.push(() => rm(folder, { recursive: true }))
    return folder
  }

  const echo = async (client: RawClient, text: string): Promise<string> => {
    const call = client.call(pathOf('Echo'))
    call.stream.end(Buffer.from(text))
    const [message] = await call.messages(1)
    return String(message)
  }

  const rawSocket = async (address: ListenAddress): Promise<Socket> => {
    const socket = 'socketPath' in address ? connect(address.socketPath) : connect(address.port, address.host)
    socket.on('error', () => {})
    cleanups.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }

  describe(`${name}: calls`, () => {
    test('messages go both ways, in order, and the call ends well', async () => {
      const { client } = await start()
      const call = client.call(pathOf('Echo'))
      for (const text of ['a', 'b', '']) call.stream.write(Buffer.from(text))
      await call.messages(3)
      call.stream.end()
      await expect(call.status).resolves.toMatchObject({ code: status.OK })
      expect(call.received.map(String)).toEqual(['a', 'b', ''])
    })

    test('answers can follow the half close', async () => {
      const { client } = await start()
      const call = client.call(pathOf('AnswerAtEnd'))
      call.stream.write(Buffer.from('a'))
      call.stream.end(Buffer.from('b'))
      await expect(call.status).resolves.toMatchObject({ code: status.OK })
      expect(call.received.map(String)).toEqual(['a,b'])
    })

    test.each([
      ['cancelled', status.CANCELLED],
      ['internal', status.INTERNAL],
      ['invalid-argument', status.INVALID_ARGUMENT],
      ['not-found', status.NOT_FOUND],
      ['unavailable', status.UNAVAILABLE],
    ])('an error status reaches the peer after what was sent: %s', async (code, expected) => {
      const { client } = await start()
      const call = client.call(pathOf('Fail'))
      call.stream.write(Buffer.from(code))
      await expect(call.status).resolves.toMatchObject({ code: expected, details: `ended with ${code}` })
      expect(call.received.map(String)).toEqual(['before'])
    })

    test('a peer that cancels closes the call once; what is sent then is lost', async () => {
      const { client, log } = await start()
      const call = client.call(pathOf('Hold'))
      call.stream.write(Buffer.from('x'))
      await call.messages(1)
      call.stream.cancel()
      await log.noted('hold closed')
      await expect(echo(client, 'still there')).resolves.toBe('still there')
      expect(log.events.filter((event) => event === 'hold closed')).toHaveLength(1)
      expect(log.events.at(-1)).toBe('hold closed')
      expect(call.received.map(String)).toEqual(['x'])
    })

    test('a half close is told, and leaves the call open', async () => {
      const { client, log } = await start()
      const call = client.call(pathOf('Hold'))
      call.stream.end(Buffer.from('x'))
      await log.noted('hold half-closed')
      await call.messages(1)
      await expect(echo(client, 'y')).resolves.toBe('y')
      expect(log.events).toEqual(['hold x', 'hold half-closed'])
    })

    test('a connection that breaks closes its calls', async () => {
      const { address, log } = await start()
      const cable = await createCable(address)
      cleanups.push(() => cable.cut())
      const client = connectTo(cable.address)
      const calls = [client.call(pathOf('Hold')), client.call(pathOf('Hold'))]
      for (const call of calls) call.stream.write(Buffer.from('x'))
      await Promise.all(calls.map((call) => call.messages(1)))
      cable.cut()
      await log.noted('hold closed', 2)
      expect(log.events.filter((event) => event === 'hold closed')).toHaveLength(2)
    })

    test('an unknown method is refused', async () => {
      const { client } = await start()
      await expect(client.call('/test.Seam/Nothing').status).resolves.toMatchObject({ code: status.UNIMPLEMENTED })
    })

    test('1100 calls are open at once on one connection', async () => {
      const { client, log } = await start()
      const calls = Array.from({ length: 1100 }, () => client.call(pathOf('Hold')))
      for (const call of calls) call.stream.write(Buffer.from('x'))
      await log.noted('hold x', 1100)
      await Promise.all(calls.map((call) => call.messages(1)))
      for (const call of calls) call.stream.cancel()
      await log.noted('hold closed', 1100)
    })
  })

  describe(`${name}: faults`, () => {
    test('a message at the limit passes, a larger one is refused, and the server lives on', async () => {
      const { client } = await start()
      await expect(echo(client, 'x'.repeat(maxMessageBytes))).resolves.toHaveLength(maxMessageBytes)
      const call = client.call(pathOf('Echo'))
      call.stream.write(Buffer.alloc(maxMessageBytes + 1))
      await expect(call.status).resolves.toMatchObject({ code: status.RESOURCE_EXHAUSTED })
      await expect(echo(client, 'y')).resolves.toBe('y')
    })

    test.each(['BadDecode', 'BadEncode', 'Throw'])('%s ends its own call with an error', async (method) => {
      const { client } = await start()
      const call = client.call(pathOf(method))
      call.stream.write(Buffer.from('x'))
      await expect(call.status).resolves.toMatchObject({ code: status.INTERNAL })
      await expect(echo(client, 'y')).resolves.toBe('y')
    })

    test('a method that throws is reported, and its text does not leave', async () => {
      const { client, faults } = await start()
      const call = client.call(pathOf('Throw'))
      call.stream.write(Buffer.from('x'))
      const { details } = await call.status
      expect(details).not.toContain('method failed')
      expect(faults).toEqual([new Error('method failed')])
    })

    test.each([
      ['text', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
      ['zeroes', Buffer.alloc(4096)],
      ['ones', Buffer.alloc(4096, 0xff)],
      [
        'a good preface, then noise',
        Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(999, 7)]),
      ],
      ['half a preface', Buffer.from('PRI * HT')],
    ])('%s on the port disturbs nobody', async (_name, noise) => {
      const { client, address } = await start()
      const socket = await rawSocket(address)
      socket.write(noise)
      await expect(echo(client, 'y')).resolves.toBe('y')
      socket.destroy()
      await expect(echo(client, 'z')).resolves.toBe('z')
    })
  })

  describe(`${name}: the end`, () => {
    test('a drain lets open calls end, and takes no new connection', async () => {
      const { client, server, address } = await start()
      const call = client.call(pathOf('Echo'))
      call.stream.write(Buffer.from('a'))
      await call.messages(1)
      const drained = server.drain(60_000)
      const late = createRawClient(address)
      cleanups.push(() => late.close())
      await expect(late.call(pathOf('Echo')).status).resolves.toMatchObject({ code: status.UNAVAILABLE })
      call.stream.end(Buffer.from('b'))
      await expect(call.status).resolves.toMatchObject({ code: status.OK })
      await drained
      expect(call.received.map(String)).toEqual(['a', 'b'])
    })

    test('a drain ends long-lived calls, after the others', async () => {
      const { client, server } = await start()
      const stay = client.call(pathOf('Stay'))
      const work = client.call(pathOf('Echo'))
      for (const call of [stay, work]) call.stream.write(Buffer.from('x'))
      await Promise.all([stay.messages(1), work.messages(1)])
      const drained = server.drain(60_000)
      stay.stream.write(Buffer.from('still read'))
      await stay.messages(2)
      work.stream.end()
      await expect(work.status).resolves.toMatchObject({ code: status.OK })
      await expect(stay.status).resolves.toMatchObject({ code: status.UNAVAILABLE })
      await drained
    })

    test('a drain with nothing but long-lived calls does not wait', async () => {
      const { client, server } = await start()
      const stay = client.call(pathOf('Stay'))
      stay.stream.write(Buffer.from('x'))
      await stay.messages(1)
      await server.drain(60_000)
      await expect(stay.status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    })

    test('a drain cuts what is open at its deadline', async () => {
      const { client, server, log } = await start()
      const call = client.call(pathOf('Hold'))
      call.stream.write(Buffer.from('x'))
      await call.messages(1)
      await server.drain(1)
      const { code } = await call.status
      expect(code).not.toBe(status.OK)
      await log.noted('hold closed')
    })

    test('a stop cuts open calls, never as if they had ended well, and can be repeated', async () => {
      const { client, server, log } = await start()
      const call = client.call(pathOf('Hold'))
      call.stream.write(Buffer.from('x'))
      await call.messages(1)
      await server.stop()
      await server.stop()
      const { code } = await call.status
      expect(code).not.toBe(status.OK)
      await log.noted('hold closed')
    })

    test('a stop cuts a peer that does not take its answers', async () => {
      const { client, server, log } = await start()
      const call = client.call(pathOf('Flood'))
      call.stream.write(Buffer.from('x'))
      await call.messages(1)
      call.stream.pause()
      await server.stop()
      await log.noted('flood closed')
    })

    test('a stop closes connections that carry no call', async () => {
      const { server, address } = await start()
      const socket = await rawSocket(address)
      socket.resume()
      const closed = once(socket, 'close')
      await server.stop()
      await closed
    })

    test('a server that was never started can be stopped', async () => {
      const { server } = prepare({ host: '127.0.0.1', port: 0 })
      await expect(server.stop()).resolves.toBeUndefined()
    })
  })

  describe(`${name}: addresses`, () => {
    test('the address that is in use is told', async () => {
      const { address } = await start({ host: '127.0.0.1', port: 0 })
      expect(address).toEqual({ host: '127.0.0.1', port: expect.any(Number) })
      expect(address).not.toMatchObject({ port: 0 })
    })

    test('a port in use is refused', async () => {
      const { address } = await start()
      await expect(prepare(address).server.start()).rejects.toThrow()
    })

    test('a unix socket serves, and is gone after the stop', async () => {
      const socketPath = join(await tempFolder(), 'rpc.sock')
      const { client, server, address } = await start({ socketPath })
      expect(address).toEqual({ socketPath })
      await expect(echo(client, 'x')).resolves.toBe('x')
      await server.stop()
      await expect(rawSocket(address)).rejects.toMatchObject({ code: 'ENOENT' })
    })

    test('a unix socket that a killed process left behind is replaced', async () => {
      const socketPath = join(await tempFolder(), 'rpc.sock')
      await leaveSocketBehind(socketPath)
      const { client } = await start({ socketPath })
      await expect(echo(client, 'x')).resolves.toBe('x')
    })

    test('a unix socket in use stays with its server', async () => {
      const socketPath = join(await tempFolder(), 'rpc.sock')
      const { client } = await start({ socketPath })
      await expect(prepare({ socketPath }).server.start()).rejects.toThrow()
      await expect(echo(client, 'x')).resolves.toBe('x')
    })

    test('a file that is no socket is left alone', async () => {
      const socketPath = join(await tempFolder(), 'file')
      await writeFile(socketPath, 'precious')
      await expect(prepare({ socketPath }).server.start()).rejects.toThrow()
    })
  })
}

/** A socket file whose server is gone: a close would remove it, so it is linked under the name first. */
const leaveSocketBehind = async (socketPath: string): Promise<void> => {
  const server = createServer()
  server.listen(`${socketPath}.first`)
  await once(server, 'listening')
  await link(`${socketPath}.first`, socketPath)
  server.close()
  await once(server, 'close')
}
