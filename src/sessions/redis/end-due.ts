import type { RemovalQueue } from '../removal-queue.ts'
import { everyPartition } from './every-partition.ts'
import type { Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'

/** Due sessions that one script ends on the way to other work: it holds up the turns of all on its server. */
const mostEnded = 16

/**
 * Ends due sessions, up to `limit` in each partition. `gateway` names the one that works on them: partitions where another
 * one does are passed over. Default: all are looked at.
 */
export const endDue = async (
  partitions: Pick<Partitions, 'all'>,
  { gateway = '', limit = mostEnded } = {},
): ReturnType<RemovalQueue['expireDue']> => {
  const replies = await everyPartition(partitions, (partition) => partition.run('expire-due', [gateway, limit]))
  const counts = replies.map(({ detail }) => readAll(detail, Number))
  return {
    ended: counts.reduce((sum, [ended = 0]) => sum + ended, 0),
    hasMore: counts.some(([, looked = 0]) => looked >= limit),
  }
}
