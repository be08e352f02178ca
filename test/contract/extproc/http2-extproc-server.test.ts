import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createHealthState, type HealthState } from '../../../src/admin/grpc-health-state.ts'
import type { EndedTurn, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import {
  createExtProcServer,
  type ExtProcServer,
  type ExtProcTransport,
} from '../../../src/extproc/create-extproc-server.ts'
import { answered, batchOf, entryOf } from '../../unit/accesslog/log-entries.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'
import { createRawClient, type RawClient } from './raw-client.ts'
import { createSeamLog, type SeamLog } from './seam-methods.ts'

const process = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
const accessLogs = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'
const health = '/grpc.health.v1.Health'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Bench {
  readonly server: ExtProcServer
  readonly client: RawClient
  readonly state: HealthState
  readonly turns: readonly EndedTurn[]
  readonly left: readonly string[]
  readonly log: SeamLog
}

const start = async (transport: ExtProcTransport): Promise<Bench> => {
  const state = createHealthState()
  const log = createSeamLog()
  const turns: EndedTurn[] = []
  const left: string[] = []
  const server = createExtProcServer({
    transport,
    service: {
      onHeaders: async (request): Promise<HeadersDecision> =>
        request.path === '/v1/context'
          ? {
              kind: 'need-body',
              decide: async (body) => ({ kind: 'response', status: 201, body: body.length, headers: { 'x-a': 'é' } }),
            }
          : {
              kind: 'forward',
              destinations: ['10.0.0.1:8000'],
              requestHeaders: { 'x-turn': request.header('x-session-id').join() },
              responseHeaders: { 'x-context-cache': 'hit' },
              splice: '"a":"ü"',
              path: '/v1/chat/completions',
              expectModel: undefined,
              ticket: { turnId: 't', pod: '10.0.0.1:8000', session: undefined },
            },
      endTurn: async (turn) => {
        turns.push(turn)
        log.note('turn')
      },
      clientDisconnected: async (requestKey) => {
        left.push(requestKey)
        log.note('left')
      },
    },
    listen: { host: '127.0.0.1', port: 0 },
    maxBodyBytes: 100_000,
    health: state,
    hooks: {
      streamOpened: () => log.note('opened'),
      streamClosed: () => log.note('closed'),
      message: () => {},
      fault: () => log.note('fault'),
      entryMalformed: () => log.note('malformed'),
    },
  })
  cleanups.push(() => server.stop())
  const client = createRawClient(await server.start())
  cleanups.push(() => client.close())
  return { server, client, state, turns, left, log }
}

const header = (name: string, value: string): Buffer => field(1, field(1, name), field(3, value))

/** What a client of both transports sees of these calls, as hexadecimal text. */
const conversation = async ({ client, state }: Bench): Promise<readonly string[]> => {
  const use = client.call(process)
  use.stream.write(
    Buffer.concat([
      field(2, field(1, header(':path', '/v1/completions'), header('x-session-id', 'a'), header('x-session-id', 'b'))),
      field(11),
    ]),
  )
  await use.messages(1)
  use.stream.end()
  const create = client.call(process)
  create.stream.write(Buffer.concat([field(2, field(1, header(':path', '/v1/context'))), field(11, int(1, 2))]))
  await create.messages(1)
  create.stream.write(field(4, field(1, Buffer.alloc(90_000)), int(2, 1)))
  await create.messages(2)
  create.stream.end()
  const check = client.call(`${health}/Check`)
  check.stream.end(field(1, 'readiness'))
  const watch = client.call(`${health}/Watch`)
  watch.stream.end(field(1, 'nobody'))
  await watch.messages(1)
  state.setServing(true)
  const checkAgain = client.call(`${health}/Check`)
  checkAgain.stream.end()
  const broken = client.call(process)
  broken.stream.write(Buffer.from([0x12, 0x7f, 0x00]))
  const calls = [use, create, check, checkAgain, broken]
  const statuses = await Promise.all(calls.map((call) => call.status))
  return [
    ...statuses.map(({ code }) => status[code]),
    ...[...calls, watch].flatMap(({ received }) => received.map((message) => message.toString('hex'))),
  ]
}

test('both transports say the same to the byte', async () => {
  const [reference, own] = [await conversation(await start('grpc-js')), await conversation(await start('http2'))]
  expect(reference.slice(0, 5)).toEqual(['OK', 'OK', 'OK', 'INVALID_ARGUMENT', 'INTERNAL'])
  expect(own).toEqual(reference)
  expect(reference).toHaveLength(10)
})

describe.each<ExtProcTransport>(['grpc-js', 'http2'])('%s', (transport) => {
  test('ended turns reach the service', async () => {
    const { client, turns, log } = await start(transport)
    const call = client.call(accessLogs)
    call.stream.end(batchOf(entryOf({ ...answered, flags: 'DR', usage: '{"prompt_tokens":12}' })))
    await log.noted('turn')
    expect(turns).toEqual([
      {
        ticket: 't1',
        status: 200,
        complete: false,
        clientDisconnected: true,
        upstreamFailed: false,
        servedBy: '10.0.0.1:8000',
        usage: { promptTokens: 12, outputTokens: 0, cachedTokens: 0 },
        ttfbMs: 1002.5,
      },
    ])
    await expect(call.status).resolves.toMatchObject({ code: status.OK })
  })

  test('requests that were left reach the service by their key', async () => {
    const { client, left, log } = await start(transport)
    const call = client.call(accessLogs)
    call.stream.end(batchOf(entryOf({ flags: 'DC', requestKey: 'k1' })))
    await log.noted('left')
    expect(left).toEqual(['k1'])
  })

  test('a drain tells health checks first', async () => {
    const { client, server, state } = await start(transport)
    state.setServing(true)
    const watch = client.call(`${health}/Watch`)
    watch.stream.end(field(1))
    await watch.messages(1)
    await server.drain(60_000)
    await expect(watch.status).resolves.toMatchObject({ code: status.UNAVAILABLE })
    expect(watch.received).toEqual([int(1, 1), int(1, 2)])
  })
})
