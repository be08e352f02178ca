import { once } from 'node:events'
import { link, lstat, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { ContextCacheManager, EndedTurn, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import { createHealthState, type HealthState } from '../../../src/extproc/health.ts'
import { createExtProcServer, type ExtProcServer, type ListenAddress } from '../../../src/extproc/server.ts'
import { eventually } from '../../support/eventually.ts'
import { answered, batchOf, entryOf } from '../../unit/accesslog/log-entries.ts'
import { field, int, struct } from '../../unit/extproc/protobuf-bytes.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createRawClient, type RawClient } from './raw-client.ts'

const process = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
const accessLogs = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'
const check = '/grpc.health.v1.Health/Check'
const watch = '/grpc.health.v1.Health/Watch'

interface Bench {
  readonly server: ExtProcServer
  readonly client: RawClient
  readonly health: HealthState
  readonly log: EventLog
  readonly turns: readonly EndedTurn[]
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const prepare = (listen: ListenAddress, part: Partial<ContextCacheManager> = {}): Omit<Bench, 'client'> => {
  const health = createHealthState()
  const log = createEventLog()
  const turns: EndedTurn[] = []
  const server = createExtProcServer({
    service: {
      onHeaders: async () => ({ kind: 'passthrough', destinations: ['10.0.0.1:8000'] }),
      endTurn: async (turn) => {
        turns.push(turn)
        log.note('turn')
      },
      clientDisconnected: async (requestKey) => log.note(`disconnected ${requestKey}`),
      ...part,
    },
    listen,
    maxBodyBytes: 100_000,
    health,
    hooks: {
      streamOpened: () => log.note('opened'),
      streamClosed: () => log.note('closed'),
      message: (phase) => log.note(`replied to ${phase}`),
      fault: () => log.note('fault'),
      entryMalformed: () => log.note('malformed'),
    },
  })
  cleanups.push(() => server.stop())
  return { server, health, log, turns }
}

const anyPort: ListenAddress = { host: '127.0.0.1', port: 0 }

const start = async (part: Partial<ContextCacheManager> = {}, listen: ListenAddress = anyPort): Promise<Bench> => {
  const parts = prepare(listen, part)
  const client = createRawClient(await parts.server.start())
  cleanups.push(() => client.close())
  return { ...parts, client }
}

const requestHeaders = (...more: readonly Buffer[]): Buffer =>
  Buffer.concat([field(2, field(1, field(1, field(1, ':path'), field(3, '/v1/completions')))), ...more])

const buffered = field(11, int(1, 2))
/** Neither body crosses. */
const headersAlone = field(11)

describe('ext_proc', () => {
  test('a decision comes back on the stream, which ends once Envoy has half closed it', async () => {
    const { client, log } = await start()
    const call = client.call(process)
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

  test('a stream that Envoy ends by itself is left to it', async () => {
    const { client, log } = await start()
    const call = client.call(process)
    call.stream.write(requestHeaders(headersAlone))
    await call.messages(1)
    expect(log.events).not.toContain('closed')
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })

  test('a decision on a body ends its stream', async () => {
    const { client } = await start({
      onHeaders: async () => ({
        kind: 'need-body',
        decide: async () => ({ kind: 'passthrough', destinations: [] }),
      }),
    })
    const call = client.call(process)
    call.stream.write(requestHeaders(buffered))
    await call.messages(1)
    call.stream.write(field(4, field(1, '{}'), int(2, 1)))
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    expect(call.received).toHaveLength(2)
  })

  test('1,100 streams are open at once on one connection', async () => {
    const { client, log } = await start({ onHeaders: () => new Promise(() => {}) })
    for (let stream = 0; stream < 1_100; stream++) client.call(process).stream.write(requestHeaders())
    await log.noted('opened', 1_100)
  })

  test('an unknown method is refused', async () => {
    const { client } = await start()
    await expect(client.call('/envoy.service.ext_proc.v3.ExternalProcessor/None').status).resolves.toMatchObject({
      code: status.UNIMPLEMENTED,
    })
  })

  test('a body as large as allowed passes the transport, and one byte more is answered 413', async () => {
    const decide = async (body: Buffer): Promise<HeadersDecision & { kind: 'response' }> => ({
      kind: 'response',
      status: 200,
      body: body.length,
      headers: {},
    })
    const { client } = await start({ onHeaders: async () => ({ kind: 'need-body', decide }) })
    const answers = await Promise.all(
      [100_000, 100_001].map(async (bytes) => {
        const call = client.call(process)
        call.stream.write(requestHeaders(buffered))
        await call.messages(1)
        call.stream.write(field(4, field(1, Buffer.alloc(bytes)), int(2, 1)))
        const [, answer] = await call.messages(2)
        call.stream.end()
        await call.status
        return String(answer)
      }),
    )
    expect(answers[0]).toContain('100000')
    expect(answers[1]).toContain('request_too_large')
  })

  test.each([
    ['a body first', field(4, field(1, 'x'))],
    ['no message', Buffer.alloc(0)],
    ['garbage', Buffer.from([0x12, 0x7f, 0x00])],
  ])('%s ends its stream with an error', async (_name, bytes) => {
    const { client } = await start()
    const call = client.call(process)
    call.stream.write(bytes)
    await expect(call.status).resolves.toMatchObject({ code: status.INTERNAL })
    expect(call.received).toEqual([])
  })

  test('a message above every limit ends its stream with an error', async () => {
    const { client } = await start()
    const call = client.call(process)
    call.stream.write(Buffer.alloc(200_000))
    await expect(call.status).resolves.toMatchObject({ code: status.RESOURCE_EXHAUSTED })
  })

  test('a client that leaves aborts the decision; the stream never ends well', async () => {
    const log = createEventLog()
    const { client } = await start({
      onHeaders: (_request, { signal }) =>
        new Promise(() => {
          log.note('asked')
          signal.addEventListener('abort', () => log.note('aborted'))
        }),
    })
    const call = client.call(process)
    call.stream.write(requestHeaders())
    await log.noted('asked')
    call.stream.end()
    await log.noted('aborted')
    await expect(call.status).resolves.toMatchObject({ code: status.CANCELLED })
  })

  test('a drain waits for a decision', async () => {
    const log = createEventLog()
    let finish = (): void => {}
    const { client, server, health } = await start({
      onHeaders: () =>
        new Promise((resolve) => {
          finish = () => resolve({ kind: 'passthrough', destinations: [] })
          log.note('asked')
        }),
    })
    health.setServing(true)
    const call = client.call(process)
    call.stream.write(requestHeaders())
    await log.noted('asked')
    const drained = server.drain(60_000)
    expect(health.isServing()).toBe(false)
    finish()
    await call.messages(1)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    await drained
  })

  test('a drain takes no new connection', async () => {
    const log = createEventLog()
    const { client, server, address } = await startHolding(log)
    const call = client.call(process)
    call.stream.write(requestHeaders())
    await log.noted('asked')
    const drained = server.drain(60_000)
    const late = createRawClient(address)
    cleanups.push(() => late.close())
    await expect(late.call(process).status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    call.stream.end()
    await drained
  })

  test.each([
    { name: 'a drain at its deadline', end: (server: ExtProcServer) => server.drain(1) },
    {
      name: 'a stop, also a second one',
      end: async (server: ExtProcServer) => {
        await server.stop()
        await server.stop()
      },
    },
  ])('$name ends open streams with an error', async ({ end }) => {
    const log = createEventLog()
    const { client, server } = await startHolding(log)
    const call = client.call(process)
    call.stream.write(requestHeaders())
    await log.noted('asked')
    await end(server)
    const { code } = await call.status
    expect(code).not.toBe(status.OK)
    await log.noted('aborted')
  })

  test('a stop closes connections without a stream', async () => {
    const { server, address } = await startHolding(createEventLog())
    const socket = connect({ host: '127.0.0.1', port: 'port' in address ? address.port : 0 })
    await once(socket, 'connect')
    socket.resume()
    const closed = once(socket, 'close')
    await server.stop()
    await closed
  })

  test('a server that was never started can be stopped', async () => {
    await expect(prepare(anyPort).server.stop()).resolves.toBeUndefined()
  })
})

/** Decisions that never come. */
const startHolding = async (
  log: EventLog,
): Promise<{ readonly client: RawClient; readonly server: ExtProcServer; readonly address: ListenAddress }> => {
  const { server } = prepare(anyPort, {
    onHeaders: (_request, { signal }) =>
      new Promise(() => {
        log.note('asked')
        signal.addEventListener('abort', () => log.note('aborted'))
      }),
  })
  const address = await server.start()
  const client = createRawClient(address)
  cleanups.push(() => client.close())
  return { client, server, address }
}

describe('addresses', () => {
  const socketPath = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'extproc-'))
    cleanups.push(() => rm(folder, { recursive: true }))
    return join(folder, 'rpc.sock')
  }
  const answers = async (client: RawClient): Promise<void> => {
    const call = client.call(check)
    call.stream.end(field(1, 'liveness'))
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  }

  test('a port in use is refused', async () => {
    const { server } = prepare(anyPort)
    const address = await server.start()
    await expect(prepare(address).server.start()).rejects.toThrow()
  })

  test('a Unix socket serves, and is gone after the stop', async () => {
    const path = await socketPath()
    const { client, server } = await start({}, { socketPath: path })
    await answers(client)
    await server.stop()
    await expect(lstat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a Unix socket that a killed process left is replaced', async () => {
    const path = await socketPath()
    await leaveSocketBehind(path)
    const { client } = await start({}, { socketPath: path })
    await answers(client)
  })

  test('a Unix socket in use stays with its server', async () => {
    const path = await socketPath()
    const { client } = await start({}, { socketPath: path })
    await expect(prepare({ socketPath: path }).server.start()).rejects.toThrow()
    await answers(client)
  })

  test('a file that is no socket stays', async () => {
    const path = await socketPath()
    await writeFile(path, 'precious')
    await expect(prepare({ socketPath: path }).server.start()).rejects.toThrow()
    expect(await readFile(path, 'utf8')).toBe('precious')
  })
})

/** A socket file whose server is gone: a close would remove it, so it gets a second name first. */
const leaveSocketBehind = async (path: string): Promise<void> => {
  const server = createServer()
  server.listen(`${path}.first`)
  await once(server, 'listening')
  await link(`${path}.first`, path)
  server.close()
  await once(server, 'close')
}

describe('turns of the accelerator', () => {
  const turns = '/contextcache.turns.v1.Turns/Decide'
  const ask = (id: number): Buffer => Buffer.from([0x0a, 8, 0x08, id, 0x12, 4, 0, 0, 0, 0])
  const retire = Buffer.from([0x10, 1])
  /** Of the decisions in these messages. Ids and decisions are short. */
  const idsOf = (messages: readonly Buffer[]): readonly number[] => {
    const bytes = Buffer.concat(messages)
    const ids: number[] = []
    for (let at = 0; at < bytes.length; at += 2) {
      if (bytes[at] !== 0x0a) continue
      ids.push(bytes[at + 3] ?? 0)
      at += bytes[at + 1] ?? 0
    }
    return ids
  }

  test('share a stream, and each gets its own decision', async () => {
    const { client, log } = await start()
    const call = client.call(turns)
    for (let id = 1; id <= 100; id++) call.stream.write(ask(id))
    await eventually(() => idsOf(call.received).length >= 100)
    expect(new Set(idsOf(call.received)).size).toBe(100)
    expect(Buffer.concat(call.received).toString()).toContain('10.0.0.1:8000')
    expect(log.events.filter((event) => event === 'closed')).toHaveLength(100)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })

  test('a broken stream aborts its pending decisions', async () => {
    const log = createEventLog()
    const { client } = await start({
      onHeaders: (_request, { signal }) =>
        new Promise(() => {
          log.note('asked')
          signal.addEventListener('abort', () => log.note('aborted'))
        }),
    })
    const call = client.call(turns)
    call.stream.write(ask(1))
    await log.noted('asked')
    call.stream.cancel()
    await log.noted('aborted')
  })

  test('bytes that are no message end the stream with an error', async () => {
    const { client } = await start()
    const call = client.call(turns)
    call.stream.write(Buffer.from([1]))
    await expect(call.status).resolves.toMatchObject({ code: status.INTERNAL })
  })

  test('a drain retires the stream, and waits for pending decisions and for the close of the stream', async () => {
    const log = createEventLog()
    let finish = (): void => {}
    const { client, server, health } = await start({
      onHeaders: () =>
        new Promise((resolve) => {
          finish = () => resolve({ kind: 'passthrough', destinations: [] })
          log.note('asked')
        }),
    })
    health.setServing(true)
    const call = client.call(turns)
    call.stream.write(ask(9))
    await log.noted('asked')
    const drained = server.drain(60_000)
    await eventually(() => call.received.some((message) => message.equals(retire)))
    finish()
    await eventually(() => idsOf(call.received).includes(9))
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    await drained
  })
})

describe('access log', () => {
  const usage = '{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}'
  const turn = (ticket: string): string => entryOf({ ...answered, ticket, usage })

  test('turns are handed to the service, other entries are not, and malformed ones are counted', async () => {
    const { client, log, turns } = await start()
    const call = client.call(accessLogs)
    call.stream.end(batchOf(turn('t1'), turn('-'), 't3', '', turn('t2'), entryOf({ flags: 'DC', requestKey: 'k1' })))
    await log.noted('turn', 2)
    await log.noted('disconnected k1')
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    expect(call.received).toEqual([Buffer.alloc(0)])
    expect(turns.map(({ ticket }) => ticket)).toEqual(['t1', 't2'])
    expect(turns[0]).toEqual({
      ticket: 't1',
      status: 200,
      complete: true,
      clientDisconnected: false,
      upstreamFailed: false,
      servedBy: '10.0.0.1:8000',
      usage: { promptTokens: 12, outputTokens: 3, cachedTokens: 8 },
      ttfbMs: 1002.5,
    })
    expect(log.events.filter((event) => event === 'malformed')).toHaveLength(1)
  })

  test.each<[string, ContextCacheManager['endTurn']]>([
    ['rejects', () => Promise.reject(new Error('boom'))],
    [
      'throws',
      () => {
        throw new Error('boom')
      },
    ],
  ])('a service that %s loses nothing but that turn', async (_name, endTurn) => {
    const { client, log } = await start({ endTurn })
    const call = client.call(accessLogs)
    call.stream.end(batchOf(turn('t1'), turn('t2')))
    await log.noted('fault', 2)
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })
})

describe('health', () => {
  const serving = int(1, 1)
  const notServing = int(1, 2)
  const serviceUnknown = int(1, 3)
  const following = ['', 'readiness', 'envoy.service.ext_proc.v3.ExternalProcessor']

  const ask = async (client: RawClient, service: string): Promise<Buffer | undefined> => {
    const call = client.call(check)
    call.stream.end(field(1, service))
    const [answer] = await call.messages(1)
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
    return answer
  }

  test.each(following)('service "%s" follows the state', async (service) => {
    const { client, health } = await start()
    await expect(ask(client, service)).resolves.toEqual(notServing)
    health.setServing(true)
    await expect(ask(client, service)).resolves.toEqual(serving)
  })

  test('liveness holds as long as there is an answer', async () => {
    const { client } = await start()
    await expect(ask(client, 'liveness')).resolves.toEqual(serving)
  })

  test('an unknown service is not found', async () => {
    const { client } = await start()
    const call = client.call(check)
    call.stream.end(field(1, 'nobody'))
    await expect(call.status).resolves.toMatchObject({ code: status.NOT_FOUND })
  })

  test.each([
    ['no request', []],
    ['two requests', [field(1), field(1)]],
  ])('a check with %s is refused', async (_name, requests) => {
    const { client } = await start()
    const call = client.call(check)
    for (const request of requests) call.stream.write(request)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.UNIMPLEMENTED })
  })

  test('a watch is told of every change, and of the drain, and ends with it', async () => {
    const { client, server, health } = await start()
    const call = client.call(watch)
    call.stream.end(field(1, 'readiness'))
    await call.messages(1)
    health.setServing(true)
    health.setServing(true)
    await call.messages(2)
    await server.drain(60_000)
    await expect(call.status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    expect(call.received).toEqual([notServing, serving, notServing])
  })

  test('a watch on an unknown service stays open', async () => {
    const { client, health } = await start()
    const call = client.call(watch)
    call.stream.end(field(1, 'nobody'))
    await call.messages(1)
    health.setServing(true)
    await expect(ask(client, 'readiness')).resolves.toEqual(serving)
    expect(call.received).toEqual([serviceUnknown])
  })
})
