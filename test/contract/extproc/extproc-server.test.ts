import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createHealthState, type HealthState } from '../../../src/admin/grpc-health-state.ts'
import type { ContextCacheManager, EndedTurn, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import {
  createExtProcServer,
  type ExtProcServer,
  type ExtProcTransport,
} from '../../../src/extproc/create-extproc-server.ts'
import { answered, batchOf, entryOf } from '../../unit/accesslog/log-entries.ts'
import { field, int, struct } from '../../unit/extproc/protobuf-bytes.ts'
import { createRawClient, type RawClient } from './raw-client.ts'
import { createSeamLog, type SeamLog } from './seam-methods.ts'

const process = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
const accessLogs = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'
const check = '/grpc.health.v1.Health/Check'
const watch = '/grpc.health.v1.Health/Watch'

interface Bench {
  readonly server: ExtProcServer
  readonly client: RawClient
  readonly health: HealthState
  readonly log: SeamLog
  readonly turns: readonly EndedTurn[]
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const start = async (part: Partial<ContextCacheManager> = {}, transport?: ExtProcTransport): Promise<Bench> => {
  const health = createHealthState()
  const log = createSeamLog()
  const turns: EndedTurn[] = []
  const server = createExtProcServer({
    service: {
      onHeaders: async () => ({ kind: 'passthrough', destinations: ['10.0.0.1:8000'] }),
      endTurn: async (turn) => {
        turns.push(turn)
        log.note('turn')
      },
      clientDisconnected: async () => {},
      ...part,
    },
    listen: { host: '127.0.0.1', port: 0 },
    maxBodyBytes: 100_000,
    health,
    ...(transport === undefined ? {} : { transport }),
    hooks: {
      streamOpened: () => log.note('opened'),
      streamClosed: () => log.note('closed'),
      message: (phase) => log.note(`replied to ${phase}`),
      fault: () => log.note('fault'),
      entryMalformed: () => log.note('malformed'),
    },
  })
  cleanups.push(() => server.stop())
  const client = createRawClient(await server.start())
  cleanups.push(() => client.close())
  return { server, client, health, log, turns }
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
    expect(log.events).toEqual(['opened', 'replied to request-headers', 'closed'])
  })

  test('a stream on which nothing more is told ends with its decision, whatever Envoy still says', async () => {
    const { client, log } = await start()
    const calls = Array.from({ length: 40 }, () => client.call(process))
    for (const call of calls) call.stream.write(requestHeaders(headersAlone))
    for (const call of calls) {
      await expect(call.status).resolves.toMatchObject({ code: status.OK })
      expect(call.received).toHaveLength(1)
      call.stream.end()
    }
    const after = client.call(process)
    after.stream.write(requestHeaders(headersAlone))
    await expect(after.status).resolves.toMatchObject({ code: status.OK })
    expect(log.events.filter((event) => event === 'closed')).toHaveLength(41)
  })

  test('with grpc-js it waits for Envoy', async () => {
    const { client, log } = await start({}, 'grpc-js')
    const call = client.call(process)
    call.stream.write(requestHeaders(headersAlone))
    await call.messages(1)
    expect(log.events).not.toContain('closed')
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
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
    const log = createSeamLog()
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
    const log = createSeamLog()
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
})

describe.each(['http2', 'grpc-js'] as const)('turns by the filter for them, over %s', (transport) => {
  const turns = '/contextcache.v1.Turns/Decide'
  const ask = (id: number): Buffer => Buffer.from([1, id, 0, 0, 0, 0, 0, 0, 0, 0])
  const idsOf = (messages: readonly Buffer[]): readonly number[] => messages.map((bytes) => bytes.readUInt32LE(1))

  test('are many on one stream, each decided by itself', async () => {
    const { client, log } = await start({}, transport)
    const call = client.call(turns)
    for (let id = 1; id <= 100; id++) call.stream.write(ask(id))
    const replies = await call.messages(100)
    expect(new Set(idsOf(replies)).size).toBe(100)
    expect(replies[0]?.toString()).toContain('10.0.0.1:8000')
    expect(log.events.filter((event) => event === 'closed')).toHaveLength(100)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })

  test('a stream that is cut aborts what is being decided', async () => {
    const log = createSeamLog()
    const { client } = await start(
      {
        onHeaders: (_request, { signal }) =>
          new Promise(() => {
            log.note('asked')
            signal.addEventListener('abort', () => log.note('aborted'))
          }),
      },
      transport,
    )
    const call = client.call(turns)
    call.stream.write(ask(1))
    await log.noted('asked')
    call.stream.cancel()
    await log.noted('aborted')
  })

  test('what is no message ends the stream with an error', async () => {
    const { client } = await start({}, transport)
    const call = client.call(turns)
    call.stream.write(Buffer.from([1]))
    await expect(call.status).resolves.toMatchObject({ code: status.INTERNAL })
  })

  test('a drain tells the filter to go elsewhere, and waits for what it owes and for the stream to be closed', async () => {
    const log = createSeamLog()
    let finish = (): void => {}
    const { client, server, health } = await start(
      {
        onHeaders: () =>
          new Promise((resolve) => {
            finish = () => resolve({ kind: 'passthrough', destinations: [] })
            log.note('asked')
          }),
      },
      transport,
    )
    health.setServing(true)
    const call = client.call(turns)
    call.stream.write(ask(9))
    await log.noted('asked')
    const drained = server.drain(60_000)
    const [retire] = await call.messages(1)
    expect(retire).toEqual(Buffer.from([4, 0, 0, 0, 0]))
    finish()
    expect(idsOf(await call.messages(2)).at(-1)).toBe(9)
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
    call.stream.end(batchOf(turn('t1'), turn('-'), 't3', '', turn('t2')))
    await log.noted('turn', 2)
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
  ])('%s is an invalid check', async (_name, requests) => {
    const { client } = await start()
    const call = client.call(check)
    for (const request of requests) call.stream.write(request)
    call.stream.end()
    await expect(call.status).resolves.toMatchObject({ code: status.INVALID_ARGUMENT })
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
