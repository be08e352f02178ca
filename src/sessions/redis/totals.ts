import type { TenantName } from '../session-directory.ts'
import type { TenantKey } from '../session-record.ts'
import { everyPartition } from './every-partition.ts'
import type { Partition, Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'

type All = Pick<Partitions, 'all'>

/** Counts of all partitions, or of those beside one: that one's script counts by itself, in the same step. */
export const readTotals = async (partitions: All, beside?: Partition) => {
  const [removals, sessions, kvBytes] = await sumsOf(partitions, beside, (partition) => partition.run('totals', []))
  return { removals, sessions, kvBytes }
}

/** The same of what a tenant has. `named`: sessions that clients' names chose. */
export const readTenantTotals = async (partitions: All, tenant: TenantKey | TenantName, beside?: Partition) => {
  const [sessions, named, kvBytes] = await sumsOf(partitions, beside, (partition) =>
    partition.run('tenant-totals', [tenant]),
  )
  return { sessions, named, kvBytes }
}

const sumsOf = async (
  partitions: All,
  beside: Partition | undefined,
  count: (partition: Partition) => ReturnType<Partition['run']>,
): Promise<readonly [number, number, number]> => {
  const each = await everyPartition(partitions, async (partition) =>
    partition === beside ? [] : readAll((await count(partition)).detail, Number),
  )
  const sumOf = (index: number): number => each.reduce((sum, counts) => sum + (counts[index] ?? 0), 0)
  return [sumOf(0), sumOf(1), sumOf(2)]
}
