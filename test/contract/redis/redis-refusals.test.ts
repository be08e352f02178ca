import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startRedis } from '../../../playground/start-redis.ts'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { RedisSilentError } from '../../../src/redis/redis-fault.ts'
import { type MadeCertificate, makeCertificate } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { listenLocally } from '../../support/local-server.ts'
import { startTestRedisCluster } from '../../support/redis-cluster/start-test-redis-cluster.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'

const keepMs = 600_000

let redis: TestRedis
afterEach(() => redis?.close())

/** What the connection says when Redis refuses a command: at once, and not as if it were silent. */
const refusalOf = async (call: Promise<unknown>): Promise<string> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(RedisUnavailableError)
  expect(error).not.toBeInstanceOf(RedisSilentError)
  return inspect(error)
}

test('READONLY: a server that became a replica is unavailable, and connected to anew until it is the master again', async () => {
  redis = await startTestRedis()
  const connection = await redis.connect()
  await redis.raw.replicaof('127.0.0.1', '1')
  expect(await refusalOf(connection.set('key', 'value', keepMs))).toContain('READONLY')
  await redis.raw.replicaof('NO', 'ONE')
  await eventually(() => connection.set('key', 'value', keepMs))
  expect(await connection.get('key')).toBe('value')
})

test('MASTERDOWN: a replica without its master, which does not serve old data, is unavailable', async () => {
  redis = await startTestRedis({ settings: { 'replica-serve-stale-data': 'no', replicaof: '127.0.0.1 1' } })
  const connection = await redis.connect()
  expect(await refusalOf(connection.get('key'))).toContain('MASTERDOWN')
  await redis.raw.replicaof('NO', 'ONE')
  await eventually(() => connection.get('key'))
})

test('LOADING: a server that reads its data is unavailable until it has them', async () => {
  redis = await startTestRedis({ appendOnly: true })
  const connection = await redis.connect()
  await connection.set('key', 'value', keepMs)
  await redis.raw.eval(`for i = 1, 3000 do redis.call('SET', 'other' .. i, string.rep('x', 100)) end`, 0)
  await redis.server.child.kill()
  // A millisecond for each key, and an ear for clients in between.
  const settings = { 'key-load-delay': 1_000, 'loading-process-events-interval-bytes': 1_024, appendonly: 'yes' }
  const starting = startRedis({ dir: redis.dir, port: redis.server.port, settings })
  try {
    await eventually(async () => (await refusalOf(connection.get('key'))).includes('LOADING'))
    await starting
    expect(await eventually(() => connection.get('key'))).toBe('value')
  } finally {
    await (await starting).child.kill()
  }
})

describe('TLS', () => {
  let dir: string
  let own: MadeCertificate
  let servers: Server[]
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'redis-tls-'))
    servers = []
    redis = await startTestRedis()
    own = await makeCertificate('localhost')
    for (const [name, pem] of Object.entries(own)) await writeFile(join(dir, name), pem)
  })
  afterEach(async () => {
    for (const server of servers) server.close()
    await rm(dir, { recursive: true, force: true })
  })

  /** TLS in front of Redis, since not every Redis is built with it. Clients show a certificate of the same authority. */
  const openFront = async (port: number): Promise<number> => {
    const server = createServer({ ...own, requestCert: true, rejectUnauthorized: true }, (client) => {
      const redisSocket = connect(port, '127.0.0.1')
      client.on('error', () => redisSocket.destroy()).on('close', () => redisSocket.destroy())
      redisSocket.on('error', () => client.destroy()).on('close', () => client.destroy())
      client.pipe(redisSocket).pipe(client)
    })
    servers.push(server)
    return listenLocally(server.on('tlsClientError', () => {}))
  }
  const startFront = async (): Promise<string> => `rediss://localhost:${await openFront(redis.server.port)}`
  const ca = () => join(dir, 'ca')
  const client = () => ({ certificate: join(dir, 'cert'), key: join(dir, 'key') })

  test('with an authority and a client certificate, from files that are read for each connection', async () => {
    const url = await startFront()
    const connection = await redis.connect({ url, tls: { ca: ca(), ...client() } })
    await connection.set('key', 'value', keepMs)
    expect(await redis.raw.get('key')).toBe('value')

    // The server's authority is another one from now on, and the file says so; the connection is lost.
    const next = await makeCertificate('localhost', 'next')
    for (const [name, pem] of Object.entries(next)) await writeFile(join(dir, name), pem)
    servers[0]?.setSecureContext(next)
    await redis.raw.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await eventually(() => connection.get('key'))
  })

  test.each([
    { name: 'of another authority', tls: () => client(), fault: /self.signed certificate|unable to verify/ },
    {
      name: 'that asks for a client certificate',
      tls: () => ({ ca: ca() }),
      fault: /certificate required|ECONNRESET|closed/,
    },
  ])('a server $name is not connected to', async ({ tls, fault }) => {
    const faults: string[] = []
    const onFault = (error: Error): void => void faults.push(error.message)
    const connection = await redis.connect({ url: await startFront(), tls: tls(), onFault })
    await eventually(async () => {
      await expect(connection.get('key')).rejects.toBeInstanceOf(RedisUnavailableError)
      return faults.some((message) => fault.test(message))
    })
  })

  test('nodes of a cluster are verified by the names that they announce', async () => {
    const settings = { 'cluster-announce-hostname': 'localhost', 'cluster-preferred-endpoint-type': 'hostname' }
    const cluster = await startTestRedisCluster({ replicas: 0, settings, openFront })
    try {
      const url = `rediss://localhost:${cluster.nodes[0]?.clientPort}`
      const connection = await cluster.connect({ url, tls: { ca: ca(), ...client() } })
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
        await eventually(() => connection.set(key, 'value', keepMs))
        expect(await connection.get(key)).toBe('value')
      }
      expect(new Set(await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((key) => cluster.primaryOf(key)))).size).toBe(
        3,
      )
    } finally {
      await cluster.close()
    }
  })

  test('a file that is missing is named', async () => {
    const missing = join(dir, 'none.pem')
    await expect(redis.connect({ url: await startFront(), tls: { ca: missing } })).rejects.toThrow(missing)
  })
})
