import { expect, test } from '@jest/globals'
import { alice, callsOn } from './history-calls.ts'
import { describeHistory } from './history-suite.ts'
import { memoryHistory } from './history-under-test.ts'

describeHistory('the history in memory', async () => memoryHistory())

test('all tenants together have the memory that is configured', async () => {
  const { begin, responses } = callsOn(memoryHistory(5_000).store)
  let count = 0
  while ((await begin(`r${count}`)).kind === 'stored') count += 1

  expect(count).toBeGreaterThan(0)
  await responses.remove({ tenant: alice, id: 'r0' })
  expect(await begin('again')).toEqual({ kind: 'stored' })
})
