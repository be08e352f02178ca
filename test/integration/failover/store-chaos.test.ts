import { expect, test } from '@jest/globals'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { runChaos } from '../../support/store-chaos/run-chaos.ts'

const cluster = useTestRedisCluster()

// A longer one: bench/soak/cluster-chaos.ts.
test('while primaries of a cluster die, freeze and are cut off, and slots move, sessions are right or unknown', async () => {
  const outcome = await runChaos({
    cluster: cluster(),
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
})
