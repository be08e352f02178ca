import { expect, jest, test } from '@jest/globals'
import { startTestRedisCluster } from '../../support/redis-cluster/start-test-redis-cluster.ts'
import { runChaos } from '../../support/store-chaos/run-chaos.ts'

// A machine that stalls for a second looks like one more fault, of a server or of the test itself. What is wrong with the store
// shows each time, or in the longer one: bench/soak/cluster-chaos.ts.
jest.retryTimes(2, { logErrorsBeforeRetry: true })

test('while primaries of a cluster die, freeze and are cut off, and slots move, sessions are right or unknown', async () => {
  const cluster = await startTestRedisCluster()
  try {
    const outcome = await runChaos({
      cluster,
      faults: ['kill', 'move a slot', 'freeze', 'add a node', 'cut'],
      seed: Number(process.env['CHAOS_SEED'] ?? 46),
      commandTimeoutMs: 2_000,
    })

    const { ledger, ...left } = outcome
    expect(ledger.violations).toEqual([])
    const elsewhere = ledger.unexcused.map(({ operation, partition, period, afterMs, reason }) => {
      const touched = [...period.partitions].join()
      return `${operation} of ${partition}, ${afterMs} ms after the begin of ${period.name} of ${touched}: ${reason}`
    })
    expect(elsewhere).toEqual([])
    expect(left).toMatchObject({ stuckArtefacts: [], lostAnnouncements: [], leftKeys: [] })
    // It did what it says.
    expect(ledger.failures).not.toEqual([])
    expect(ledger.sessions.some(({ countedTurns }) => countedTurns > 1)).toBe(true)
    expect(ledger.claimed.size).toBeGreaterThan(0)
  } finally {
    await cluster.close()
  }
})
