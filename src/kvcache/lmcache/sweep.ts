import { LRUCache } from 'lru-cache'
import { nanoid } from 'nanoid'
import type { UnsettledSalt } from '../chunks/chunk-ledger.ts'
import { deleteEverywhere } from './delete-everywhere.ts'
import type { ObjectKey } from './lmcache-answers.ts'
import type { Parts } from './parts.ts'

/** Finds chunks in the store that no artefact names: of turns that failed, and of gateways that died. */
export interface Sweep {
  /** Resolves to how many chunks were deleted. @throws when the store or the ledger does not answer */
  run(signal: AbortSignal): Promise<number>
}

/** The same in every process, so that one finds what another one left claimed. */
const sweeperName = 'sweep'
const saltsPerSweep = 16
const maxSaltsSeen = 10_000

export const createSweep = (parts: Parts): Sweep => {
  // A chunk may belong to a turn that is just ending, so it goes only when it was without a holder twice, some time apart.
  const seenAtMs = new LRUCache<string, ReadonlyMap<string, number>>({ max: maxSaltsSeen })
  let knowsLeftovers = false

  const sweepSalt = async (unsettled: UnsettledSalt, signal: AbortSignal): Promise<number> => {
    const { salt } = unsettled
    const sweeper = { salt, name: sweeperName }
    const keys = await parts.lmcache.keysOfSalt(salt, signal)
    // A sweeper that died in the middle left its claims.
    await parts.ledger.deleted(sweeper)
    const unheld = await parts.ledger.claimUnheld({ ...sweeper, chunks: chunksOf(keys) })
    const ripe = ripeOf(salt, unheld)
    let claimed: readonly string[] = unheld
    // What is not ripe must be free to be held.
    if (ripe.length < unheld.length) {
      await parts.ledger.deleted(sweeper)
      claimed = ripe.length === 0 ? [] : await parts.ledger.claimUnheld({ ...sweeper, chunks: ripe })
    }
    const doomed = new Set(claimed)
    const isGone = await deleteEverywhere(
      parts,
      keys.filter(({ chunk_hash_hex }) => doomed.has(chunk_hash_hex)),
      signal,
    )
    if (!isGone) return 0
    await parts.ledger.deleted(sweeper)
    if (doomed.size === unheld.length && unsettled.ageMs >= parts.limits.orphanGraceMs) {
      seenAtMs.delete(salt)
      await parts.ledger.swept(unsettled)
    }
    return doomed.size
  }

  const ripeOf = (salt: string, chunks: readonly string[]): readonly string[] => {
    const nowMs = performance.now()
    const before = seenAtMs.get(salt) ?? new Map<string, number>()
    const now = new Map(chunks.map((chunk) => [chunk, before.get(chunk) ?? nowMs]))
    seenAtMs.set(salt, now)
    return chunks.filter((chunk) => nowMs - (now.get(chunk) ?? nowMs) >= parts.limits.orphanGraceMs)
  }

  /** A ledger that was lost forgets salts; the store still knows those that this deployment made. */
  const noteLeftovers = async (signal: AbortSignal): Promise<void> => {
    const salts = new Set([...(await parts.lmcache.salts('l1', signal)), ...(await parts.lmcache.salts('l2', signal))])
    for (const salt of salts) {
      if (parts.salts.isOurs(salt)) await parts.ledger.open({ salt, turnId: `leftover:${nanoid()}`, leaseMs: 1 })
    }
    knowsLeftovers = true
  }

  return {
    run: async (signal) => {
      if (!knowsLeftovers) await noteLeftovers(signal)
      let deleted = 0
      for (const unsettled of await parts.ledger.unsettled(saltsPerSweep)) deleted += await sweepSalt(unsettled, signal)
      return deleted
    },
  }
}

const chunksOf = (keys: readonly ObjectKey[]): readonly string[] => [
  ...new Set(keys.map(({ chunk_hash_hex }) => chunk_hash_hex)),
]
