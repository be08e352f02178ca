import { nanoid } from 'nanoid'
import { clampCount, type KvLimit } from '../limits.ts'
import type { Removal, RemovalQueue } from '../removal-queue.ts'
import { endDue } from './end-due.ts'
import type { Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'
import { assertId, escapeLine } from './session-text.ts'
import { readRemoval } from './store-replies.ts'
import { readTotals } from './totals.ts'

/**
 * The removal queue, one of each partition. One gateway at a time works on a partition's: `worker.lua` says for how long.
 */
export const createRedisRemovals = (parts: {
  readonly partitions: Partitions
  /** Names this gateway. */
  readonly gateway: string
  readonly kvLimit: KvLimit | undefined
}) => {
  const { partitions, gateway, kvLimit } = parts
  /** Where the next claim begins, so that no partition waits for those before it. */
  let first = 0

  return {
    async announce({ artefactId, session, payload, graceMs }) {
      const args = [assertId(artefactId), assertId(session), escapeLine(payload), clampCount(graceMs)]
      await (await partitions.of(session)).run('announce', args)
    },

    expireDue: (limit) => endDue(partitions, { gateway, limit }),

    /** A partition whose server is away is passed over, unless all are. */
    async claim({ limit, leaseMs }) {
      const claim = nanoid(12)
      const all = await partitions.all()
      const claimed: Removal[] = []
      let fault: { readonly error: unknown } | undefined
      let answers = 0
      const begin = first
      for (let step = 0; step < all.length && claimed.length < limit; step += 1) {
        first = (begin + step) % all.length
        const args = [gateway, limit - claimed.length, clampCount(leaseMs), claim]
        try {
          const reply = await all[first]?.run('claim', args)
          claimed.push(...readAll(reply?.detail, (item) => readRemoval(item, claim)))
          answers += 1
        } catch (error) {
          fault ??= { error }
        }
      }
      if (answers === 0 && fault !== undefined) throw fault.error
      return claimed
    },

    async ack(removals) {
      for (const [partition, some] of await partitions.group(removals, ({ session }) => session)) {
        await partition.run(
          'ack',
          some.flatMap(({ id, claim }) => [id, claim]),
        )
      }
    },

    async retryLater({ id, session, claim }, delayMs) {
      await (await partitions.of(session)).run('retry-later', [id, clampCount(delayMs), claim])
    },

    async counts() {
      const { removals, sessions } = await readTotals(partitions)
      return { removals, sessions }
    },

    async sizes() {
      const { kvBytes } = await readTotals(partitions)
      return { kvBytes: kvLimit === undefined ? undefined : kvBytes, sessionBytes: undefined }
    },
  } satisfies Partial<RemovalQueue>
}
