import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { isRedisBuiltWithTls, startTestSentinels, type TestSentinels } from '../../support/start-test-sentinels.ts'

if (await isRedisBuiltWithTls())
  describe('sentinels and servers that speak TLS alone', () => {
    let dir: string
    let rig: TestSentinels
    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), 'sentinels-tls-'))
      for (const [name, pem] of Object.entries(await makeCertificate('localhost')))
        await writeFile(join(dir, name), pem)
      rig = await startTestSentinels({
        tls: { ca: join(dir, 'ca'), certificate: join(dir, 'cert'), key: join(dir, 'key') },
      })
    })
    afterAll(async () => {
      await rig?.close()
      await rm(dir, { recursive: true, force: true })
    })

    test.each([
      ['no certificate', () => ({ ca: join(dir, 'ca') }), /certificate required|ECONNRESET|EPIPE/],
      ['no authority', () => ({ certificate: join(dir, 'cert'), key: join(dir, 'key') }), /self-signed certificate/],
    ])('a connection with %s is not made, and the fault says why', async (_what, tls, why) => {
      const faults: string[] = []
      const connection = await rig.connect({ tls: tls(), onFault: ({ message }) => faults.push(message) })
      await expect(connection.get('key')).rejects.toBeInstanceOf(RedisUnavailableError)
      expect(faults[0]).toMatch(/^No sentinel can be asked for the master\. localhost:\d+: /)
      expect(faults[0]).toMatch(why)
    })

    test('a connection with a certificate writes to the master that the sentinels name', async () => {
      const connection = await rig.connect()
      await connection.set('key', 'value', 600_000)
      expect(await (await rig.master()).raw.get('key')).toBe('value')
    })
  })
else test.todo('this Redis is built without TLS (REDIS_BIN names another): sentinels that speak TLS')
