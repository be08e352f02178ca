import { afterAll, beforeAll, expect, test } from '@jest/globals'
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
