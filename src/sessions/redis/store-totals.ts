import { everyPartition } from './every-partition.ts'
import type { Partition, Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'

/** Counts of all partitions, or of those beside one: that one's script counts by itself, in the same step. */
export const readTotals = async (partitions: Pick<Partitions, 'all'>, beside?: Partition) => {
  const each = await everyPartition(partitions, async (partition) =>
    partition === beside ? [] : readAll((await partition.run('totals', [])).detail, Number),
  )
  const sumOf = (index: number): number => each.reduce((sum, counts) => sum + (counts[index] ?? 0), 0)
  return { removals: sumOf(0), sessions: sumOf(1), kvBytes: sumOf(2) }
}
