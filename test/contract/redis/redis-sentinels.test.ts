import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { documentedRights } from '../../support/documented-rights.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestSentinels, type TestSentinels } from '../../support/start-test-sentinels.ts'

let rig: TestSentinels
beforeAll(async () => {
  rig = await startTestSentinels()
})
afterAll(() => rig?.close())

test('a connection writes to the master that the sentinels name', async () => {
  const connection = await rig.connect()
  await connection.set('key', 'value', 600_000)
  expect(await (await rig.master()).raw.get('key')).toBe('value')
})

test('a user with the rights that docs/redis.md lists works behind sentinels', async () => {
  for (const { raw } of rig.servers) await raw.acl('SETUSER', 'gateway', 'reset', ...documentedRights())
  const connection = await rig.connect({ url: rig.url.replace('//', '//gateway:password@'), keyPrefix: 'ctx:' })
  await connection.set('ctx:key', 'value', 600_000)
  expect(await connection.get('ctx:key')).toBe('value')
  await expect(connection.get('other:key')).rejects.toThrow('Redis refused get')
})

test('without the password of the sentinels, the fault says so', async () => {
  const faults: string[] = []
  const topology = { ...rig.topology, sentinelPassword: undefined }
  const connection = await rig.connect({ topology, onFault: ({ message }) => faults.push(message) })
  await expect(connection.get('key')).rejects.toBeInstanceOf(RedisUnavailableError)
  expect(faults.join()).toContain('NOAUTH')
})

test('where no sentinel can be reached, the fault says why', async () => {
  const faults: string[] = []
  const onFault = (error: Error): void => void faults.push(error.message)
  await rig.connect({ url: 'redis://gateway:secret@127.0.0.1:1', onFault })
  expect(faults[0]).toBe('No sentinel can be asked for the master. 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1')
})

// Last: the old master is frozen from here on.
test('when the master freezes, a connection writes to the one that the sentinels chose', async () => {
  const recoveries: true[] = []
  const connection = await rig.connect({ commandTimeoutMs: 250, onRecovered: () => void recoveries.push(true) })
  const master = await rig.master()
  master.server.child.pause()
  await expect(connection.set('key', 'lost', 600_000)).rejects.toThrow('did not answer within 250 ms')
  await rig.untilReplaced(master)
  await eventually(() => connection.set('key', 'new', 600_000))
  expect(await (await rig.master()).raw.get('key')).toBe('new')
})
