import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { findStartProblems } from '../../../src/app/find-start-problems.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { eventually } from '../../support/eventually.ts'
import { listenLocally } from '../../support/local-server.ts'

test('a client that connects while a port is tried is not left without an answer', async () => {
  const asked: Socket[] = []
  const redis = createServer((socket) => void asked.push(socket.on('error', () => {})))
  const port = await freePort()
  const environment = {
    CTX_LISTEN_ADMIN_PORT: String(port),
    REDIS_URL: `redis://127.0.0.1:${await listenLocally(redis)}`,
  }
  // The ports are tried for as long as Redis does not answer.
  const problems = findStartProblems(loadConfig({ environment }).groups, { asksRedis: true })

  const client = await eventually(async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket.on('error', () => {}).resume()
  })
  await once(client, 'close')

  for (const socket of asked) socket.end('-ERR\r\n'.repeat(9))
  redis.close()
  expect(await problems).toHaveLength(1)
})
