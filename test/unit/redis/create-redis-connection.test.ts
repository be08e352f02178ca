import { createServer, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { createRedisConnection } from '../../../src/redis/create-redis-connection.ts'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { listenLocally } from '../../support/local-server.ts'

describe('a connection to Redis', () => {
  test('is refused for an invalid URL, which the error does not contain', async () => {
    const options = { url: 'redis://user:secret@host:port-that-is-none', onFault: () => {} }
    const error = await createRedisConnection(options).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(Error)
    expect(inspect(error)).toContain('The Redis URL cannot be read')
    expect(inspect(error)).not.toContain('secret')
  })

  test('does not connect again after it was closed', async () => {
    const connection = await createRedisConnection({
      url: `redis://127.0.0.1:${await freePort()}`,
      onFault: () => {},
    })
    await connection.close()
    await connection.close()

    await expect(connection.get('k')).rejects.toBeInstanceOf(RedisUnavailableError)
  })

  test.each([
    { name: 'from the first call on', login: '' },
    { name: 'before the login', login: ':secret@' },
  ])('is closed, reported and reconnected when the server is silent $name', async ({ login }) => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {}).resume()
    })
    const faults: string[] = []
    const connection = await createRedisConnection({
      url: `redis://${login}127.0.0.1:${await listenLocally(silent)}`,
      commandTimeoutMs: 10,
      onFault: ({ message }) => faults.push(message),
    })

    try {
      while (sockets.length < 2) {
        await connection.get('k').catch(() => {})
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      expect(faults[0]).toContain('Socket timeout')
    } finally {
      await connection.close()
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  })
})
