import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { afterEach } from '@jest/globals'
import type { ContextCacheManager, EndedTurn } from '../../../src/context/context-cache-manager.ts'
import { createHealthState, type HealthState } from '../../../src/extproc/health.ts'
import type { ListenAddress } from '../../../src/extproc/listener.ts'
import { createExtProcServer } from '../../../src/extproc/server.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'
import { createEventLog, type EventLog } from './event-log.ts'
import { createRawClient, type RawCall, type RawClient } from './raw-client.ts'

export const paths = {
  process: '/envoy.service.ext_proc.v3.ExternalProcessor/Process',
  accessLogs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  check: '/grpc.health.v1.Health/Check',
  watch: '/grpc.health.v1.Health/Watch',
} as const

export const requestHeaders = (...more: readonly Buffer[]): Buffer =>
  Buffer.concat([field(2, field(1, field(1, field(1, ':path'), field(3, '/v1/completions')))), ...more])

/** A `protocol_config` with which the request body crosses. */
export const buffered = field(11, int(1, 2))

export const requestBody = (content: string | Buffer): Buffer => field(4, field(1, content), int(2, 1))

/** A server that was not started. The log has what its hooks and its service were called with. */
export interface Fixture {
  readonly server: ReturnType<typeof createExtProcServer>
  readonly health: HealthState
  readonly log: EventLog
  readonly turns: readonly EndedTurn[]
}

export interface StartedFixture extends Fixture {
  readonly address: ListenAddress
  readonly client: RawClient
}

export interface HoldingFixture extends StartedFixture {
  /** Makes the latest decision. */
  readonly finish: () => void
  /** Opens a call and waits until the service was asked for a decision. */
  readonly ask: (path: string, message: Buffer) => Promise<RawCall>
}

export const portOf = (address: ListenAddress): number => ('port' in address ? address.port : 0)

/** Opens a stream of ext_proc on an HTTP/2 session of its own, where a client of gRPC would do more than that. */
export const requestProcess = (session: ClientHttp2Session): ClientHttp2Stream =>
  session.request({ ':method': 'POST', ':path': paths.process, 'content-type': 'application/grpc', te: 'trailers' })

const anyPort: ListenAddress = { host: '127.0.0.1', port: 0 }

/** Fixtures that are closed after each test. */
export const useFixture = () => {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

  const connect = (address: ListenAddress): RawClient => {
    const client = createRawClient(address)
    cleanups.push(() => client.close())
    return client
  }

  const prepare = (
    part: Partial<ContextCacheManager> = {},
    listen: ListenAddress = anyPort,
    log: EventLog = createEventLog(),
  ): Fixture => {
    const health = createHealthState()
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
        peerRefused: () => log.note('refused'),
        fault: () => log.note('fault'),
        entryMalformed: () => log.note('malformed'),
      },
    })
    cleanups.push(() => server.stop())
    return { server, health, log, turns }
  }

  const start = async (...of: Parameters<typeof prepare>): Promise<StartedFixture> => {
    const fixture = prepare(...of)
    const address = await fixture.server.start()
    return { ...fixture, address, client: connect(address) }
  }

  /** A started fixture whose decisions wait for `finish`. */
  const startHolding = async (): Promise<HoldingFixture> => {
    const log = createEventLog()
    let finish = (): void => {}
    const onHeaders: ContextCacheManager['onHeaders'] = (_request, { signal }) =>
      new Promise((resolve) => {
        finish = () => resolve({ kind: 'passthrough', destinations: [] })
        signal.addEventListener('abort', () => log.note('aborted'))
        log.note('asked')
      })
    const fixture = await start({ onHeaders }, anyPort, log)
    const ask = async (path: string, message: Buffer): Promise<RawCall> => {
      const call = fixture.client.call(path)
      call.stream.write(message)
      await log.noted('asked')
      return call
    }
    return { ...fixture, finish: () => finish(), ask }
  }

  return { cleanups, connect, prepare, start, startHolding }
}
