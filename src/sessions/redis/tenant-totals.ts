import type { TenantName } from '../session-directory.ts'
import type { TenantKey } from '../session-record.ts'
import { everyPartition } from './every-partition.ts'
import type { Partition, Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'

/** What a tenant has in some partitions. */
export interface TenantTotals {
  readonly sessions: number
  readonly named: number
  readonly kvBytes: number
}

const nothing: TenantTotals = { sessions: 0, named: 0, kvBytes: 0 }

/** What a tenant has in all partitions, or in those beside one: that one's script counts by itself, in the same step. */
export const readTenantTotals = async (
  partitions: Pick<Partitions, 'all'>,
  tenant: TenantKey | TenantName,
  beside?: Partition,
): Promise<TenantTotals> => {
  const parts = await everyPartition(partitions, async (partition) => {
    if (partition === beside) return nothing
    const [sessions = 0, named = 0, kvBytes = 0] = readAll(
      (await partition.run('tenant-totals', [tenant])).detail,
      Number,
    )
    return { sessions, named, kvBytes }
  })
  return parts.reduce(
    (sum, part) => ({
      sessions: sum.sessions + part.sessions,
      named: sum.named + part.named,
      kvBytes: sum.kvBytes + part.kvBytes,
    }),
    nothing,
  )
}
