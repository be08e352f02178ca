import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { ManagedChild } from '../../playground/child-process.ts'
import { freePort, freePorts } from '../../playground/free-port.ts'
import { findRedis } from '../../playground/install/find-redis.ts'
import { ownEnvironment, toolsDir } from '../../playground/paths.ts'
import { type RunningRedis, startRedis } from '../../playground/start-redis.ts'
import { startServer } from '../../playground/start-server.ts'
import { prints } from '../../playground/wait-until-ready.ts'
import type { RedisTlsFiles } from '../../src/options/redis-location.ts'
import { createRedisConnection, type RedisConnectionOptions } from '../../src/redis/create-redis-connection.ts'
import type { RedisConnection } from '../../src/redis/redis-connection.ts'
import { readTlsFiles } from '../../src/redis/tls-files.ts'
import { eventually } from './eventually.ts'

const master = 'mymaster'
const sentinelPassword = 'of-the-sentinels'

/** A server, and a plain client that speaks to it alone. */
export interface SentinelServer {
  readonly server: RunningRedis
  readonly raw: Redis
}

/** Three sentinels, a primary and a replica, for one test file. */
export interface TestSentinels {
  /** `redis://` with the hosts and ports of the sentinels. */
  readonly url: string
  readonly topology: { readonly kind: 'sentinels'; readonly master: string; readonly sentinelPassword: string }
  /** The primary of the start, then its replica. */
  readonly servers: readonly SentinelServer[]
  readonly sentinels: readonly ManagedChild[]
  /** The server that the sentinels name as the master now. */
  master(): Promise<SentinelServer>
  /** Waits until the sentinels name another master than this one, and it takes writes. */
  untilReplaced(server: SentinelServer): Promise<void>
  /** A connection with a key prefix of its own, closed with the servers. */
  connect(options?: Partial<RedisConnectionOptions>): Promise<RedisConnection>
  close(): Promise<void>
}

export interface TestSentinelsOptions {
  /**
   * Files of a certificate for `localhost`. Servers and sentinels then speak TLS alone, ask clients for a certificate of
   * the same authority, and name each other `localhost`. For a Redis that is built with TLS.
   */
  readonly tls?: Required<RedisTlsFiles> | undefined
}

/** They end with `close`, and with this process. A silent server is replaced after about two seconds. */
export const startTestSentinels = async ({ tls }: TestSentinelsOptions = {}): Promise<TestSentinels> => {
  const host = tls === undefined ? '127.0.0.1' : 'localhost'
  const dir = await mkdtemp(join(tmpdir(), 'test-sentinels-'))
  const children: ManagedChild[] = []
  const clients: Redis[] = []
  const connections: RedisConnection[] = []
  const clientOf = (port: number, password?: string): Redis => {
    const client = new Redis(port, host, {
      protocol: 2,
      enableReadyCheck: false,
      ...(password && { password }),
      ...(tls && { tls: readTlsFiles(tls) }),
    })
    // Tests end servers on purpose.
    client.on('error', () => {})
    clients.push(client)
    return client
  }
  const start = async (name: string, settings: Readonly<Record<string, string | number>>): Promise<SentinelServer> => {
    const port = await freePort()
    const server = await startRedis({
      dir: join(dir, name),
      port,
      settings: {
        'repl-diskless-sync-delay': 0,
        ...(tls && { ...tlsSettings(port, tls), 'replica-announce-ip': host }),
        ...settings,
      },
    })
    children.push(server.child)
    return { server, raw: clientOf(server.port) }
  }
  const close = async (): Promise<void> => {
    for (const client of clients) client.disconnect()
    await Promise.all(connections.map((connection) => connection.close()))
    await Promise.all(children.map((child) => child.kill()))
    await rm(dir, { recursive: true, force: true })
  }

  try {
    const primary = await start('primary', {})
    const replica = await start('replica', { replicaof: `${host} ${primary.server.port}` })
    const servers = [primary, replica]
    // Sentinels learn of the replica from the primary, and ask it again only ten seconds later.
    await eventually(async () => (await primary.raw.info('replication')).includes('state=online'))
    const ports = await freePorts(3)
    const sentinels = await Promise.all(
      ports.map((port) => startSentinel({ dir, port, primary: `${host} ${primary.server.port}`, tls, children })),
    )
    const asked = ports.map((port) => clientOf(port, sentinelPassword))
    await eventually(async () => (await Promise.all(asked.map(knowsAll))).every(Boolean))

    const url = `${tls === undefined ? 'redis' : 'rediss'}://${ports.map((port) => `${host}:${port}`).join(',')}`
    const topology = { kind: 'sentinels', master, sentinelPassword } as const
    const findMaster = async (): Promise<SentinelServer> => {
      const answers = await Promise.all(
        asked.map((client) => client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master)),
      )
      const named = [...new Set(answers.map(String))]
      const found = servers.find(({ server }) => named[0] === `${host},${server.port}`)
      if (named.length !== 1 || found === undefined) throw new Error(`sentinels name ${named.join(' and ')}`)
      return found
    }
    return {
      url,
      topology,
      servers,
      sentinels,
      master: () => eventually(findMaster),
      untilReplaced: async (server) => {
        await eventually(async () => {
          const found = await findMaster()
          return found !== server && (await found.raw.info('replication')).includes('role:master')
        })
      },
      async connect(changes = {}) {
        const connection = await createRedisConnection({
          url,
          topology,
          tls,
          keyPrefix: `test:${randomUUID()}:`,
          onFault: () => {},
          // Not the default: on a busy machine an answer takes longer than 250 ms.
          commandTimeoutMs: 10_000,
          ...changes,
        })
        connections.push(connection)
        return connection
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Valkey as the tests install it is not. */
export const isRedisBuiltWithTls = async (): Promise<boolean> => {
  const env = ownEnvironment()
  const { command } = await findRedis({ env, toolsDir: toolsDir(env), report: undefined, signal: undefined })
  const [program, ...args] = command
  // It ends at once, since there is no certificate: one that knows TLS asks for it.
  const { stdout } = spawnSync(program, [...args, '--port', '0', '--tls-port', '1'], { encoding: 'utf8' })
  return stdout.includes('tls-cert-file')
}

/** TLS alone, also among servers. */
const tlsSettings = (port: number, tls: Required<RedisTlsFiles>) => ({
  port: 0,
  'tls-port': port,
  'tls-ca-cert-file': tls.ca ?? '',
  'tls-cert-file': tls.certificate ?? '',
  'tls-key-file': tls.key ?? '',
  'tls-replication': 'yes',
})

const knowsAll = async (client: Redis): Promise<boolean> => {
  const state = await client.info('sentinel')
  return state.includes('status=ok') && state.includes('slaves=1') && state.includes('sentinels=3')
}

const startSentinel = async (options: {
  readonly dir: string
  readonly port: number
  /** Its host and port. */
  readonly primary: string
  readonly tls: Required<RedisTlsFiles> | undefined
  readonly children: ManagedChild[]
}): Promise<ManagedChild> => {
  const file = join(options.dir, `sentinel-${options.port}.conf`)
  // It writes to its own configuration, which must be a file.
  const { port, tls } = options
  const settings = [
    ...Object.entries(tls === undefined ? { port } : tlsSettings(port, tls)).map((setting) => setting.join(' ')),
    // Certificates are for names.
    ...(tls === undefined ? [] : ['sentinel resolve-hostnames yes', 'sentinel announce-hostnames yes']),
    'bind 127.0.0.1',
    `dir ${options.dir}`,
    `requirepass ${sentinelPassword}`,
    `sentinel sentinel-pass ${sentinelPassword}`,
    `sentinel monitor ${master} ${options.primary} 2`,
    `sentinel down-after-milliseconds ${master} 500`,
    `sentinel failover-timeout ${master} 5000`,
  ]
  await writeFile(file, `${settings.join('\n')}\n`)
  const env = ownEnvironment()
  const tool = await findRedis({ env, toolsDir: toolsDir(env), report: undefined, signal: undefined })
  const child = await startServer({
    name: 'sentinel',
    command: [...tool.command, file, '--sentinel'],
    ready: prints(/\+monitor master/),
  })
  options.children.push(child)
  return child
}
