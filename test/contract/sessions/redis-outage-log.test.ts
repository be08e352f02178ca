import { once } from 'node:events'
import { createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, test } from '@jest/globals'
import { freePort } from '../../../playground/free-port.ts'
import { startRedis } from '../../../playground/start-redis.ts'
import { createContextEvents } from '../../../src/app/context-events.ts'
import { createStores } from '../../../src/app/stores.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { createLogger } from '../../../src/telemetry/logger.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { createWarnings } from '../../../src/telemetry/warnings.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedis } from '../../support/test-redis.ts'

test('an outage of Redis logs one warning without a stack, and one line at its end', async () => {
  const redis = await startTestRedis()
  const port = await freePort()
  let attempts = 0
  const refusing = createServer((socket) => {
    attempts += 1
    socket.on('error', () => {}).end('refused\r\n')
  }).listen(port, '127.0.0.1')
  await once(refusing, 'listening')
  const lines: Record<string, unknown>[] = []
  const destination = new PassThrough().on('data', (line: Buffer) => lines.push(JSON.parse(line.toString())))
  const log = createLogger({ level: 'info', destination })
  const metrics = createMetrics({ version: 'test' })
  const warnings = createWarnings(log)
  const environment = {
    CTX_TENANT_SECRET: 'x-secret-of-32-characters-or-more-x',
    PODS: '127.0.0.1:1',
    KV_DIR: '/tmp',
    CTX_SESSIONS_STORE: 'redis',
    CTX_SESSIONS_REDIS_URL: `redis://127.0.0.1:${port}`,
  }
  const loaded = loadConfig({ environment })
  if (loaded.kind !== 'loaded') throw new Error(loaded.problems)
  const { store, onFault } = await createStores(loaded.config, { log, metrics, warnings })
  const events = createContextEvents(metrics, log, onFault)

  await eventually(async () => {
    await store.expireDue(1).catch((error: unknown) => events.storeFault('sweep', error))
    return attempts >= 4 && (await metrics.render()).includes('context_cache_store_circuit_open 1')
  })
  refusing.close()
  const back = await startRedis({ dir: redis.dir, port })
  await eventually(async () => {
    await store.expireDue(1).catch((error: unknown) => events.storeFault('sweep', error))
    return lines.some(({ level }) => level === 'info')
  })
  expect(await metrics.render()).toContain('context_cache_store_circuit_open 0')
  await store.close()
  await back.child.kill()
  await redis.close()

  expect(lines).toEqual([
    {
      level: 'warn',
      time: expect.any(String),
      msg: expect.stringMatching(/^The session store is unavailable: \w/),
      kind: 'store_unavailable',
    },
    {
      level: 'info',
      time: expect.any(String),
      msg: 'The session store is available again',
      kind: 'store_unavailable',
      subject: 'sessions',
      afterSeconds: expect.any(Number),
    },
  ])
})
