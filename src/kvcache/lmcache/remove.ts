import { setTimeout } from 'node:timers/promises'
import { withinLimit } from '../../async/deadline.ts'
import type { KvRemoval, ReleasedTurn, RemoveOutcome } from '../kv-connector.ts'
import { parseClaim } from './claim.ts'
import { namePrefix } from './finish.ts'
import type { DirectoryEntry, LmcacheInstance, ObjectKey } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { objectKeysOf, parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Removes an artefact: the chunks that no other artefact needs. */
export const remove = async (
  parts: Parts,
  { payload = '' }: KvRemoval,
  signal: AbortSignal,
): Promise<RemoveOutcome> => {
  if (payload === '') return { kind: 'removed' }
  const stored = parseStoredPrefix(payload)
  if (stored === undefined) return { kind: 'foreign' }
  try {
    const isGone = await deleteUnheld(parts, stored, signal)
    return isGone ? { kind: 'removed' } : { kind: 'busy', reason: 'still_there' }
  } catch (error) {
    parts.log.debug('KV could not be removed yet', { err: error })
    return { kind: 'busy', reason: 'kv_store_unavailable' }
  }
}

/** All events of a turn come within some milliseconds of its end. How many tokens they report is unknown. */
const eventsMs = 250

/**
 * Deletes what a turn left that failed or whose session is gone: the chunks that no artefact holds. What stays, because
 * LMCache or the turn's events were away, leaves LMCache's memory by eviction, and the store by the operator's limits.
 */
export const release = async (parts: Parts, turn: ReleasedTurn): Promise<void> => {
  const claim = parseClaim(turn.claim)
  if (claim === undefined) return
  const { pod, turnId, signal } = turn
  const whole = { turnId, minTokens: Number.POSITIVE_INFINITY }
  const wait = (limited: AbortSignal) => parts.events.turnTokens(pod, whole, limited)
  const tokens = await withinLimit(eventsMs, wait, signal)
  const left = tokens === undefined ? undefined : await namePrefix(parts, turn, { claim, tokens })
  if (left !== undefined) await deleteUnheld(parts, left, signal)
}

/** Releases an artefact's chunks, and deletes those that nobody holds. False: something is left. Can be repeated. */
const deleteUnheld = async (parts: Parts, stored: StoredPrefix, signal: AbortSignal): Promise<boolean> => {
  const { salt, artefactId: name } = stored
  const unheld = await parts.ledger.release({ salt, name, chunks: stored.chunks })
  return deleteEverywhere(parts, objectKeysOf(stored, unheld), signal)
}

const maxPasses = 12

/** Deletes from the memory of instances and from the store, and looks until nothing is left. */
const deleteEverywhere = async (parts: Parts, keys: readonly ObjectKey[], signal: AbortSignal): Promise<boolean> => {
  if (keys.length === 0) return true
  const instances = await parts.lmcache.instances(signal)
  if (instances.length === 0) return false
  // Passes in a row that met nothing in use. LMCache keeps what a turn reads or writes until that has ended.
  let whole = 0
  for (let pass = 0; pass < maxPasses; pass += 1) {
    const entries = await parts.lmcache.locate(keys, signal)
    const isListed = (tier: string): boolean =>
      instances.some(({ id }) => entries.some((entry) => liesIn(entry, tier, id)))
    // An instance reports only the deletion of a file that it found: of two that stored the same file, one stays listed
    // for good. By then files were deleted twice, some time apart: the second catches a write during the first.
    if (whole > 0 && !isListed('l1') && (whole > 1 || !isListed('l2'))) return true
    const deletions = deletionsOf(instances, entries)
    const inUse = await Promise.all(deletions.map((deletion) => parts.lmcache.deleteObjects(deletion, signal)))
    whole = inUse.some((count) => count > 0) ? 0 : whole + 1
    await setTimeout(parts.lookAgainMs, undefined, { signal })
  }
  return false
}

const liesIn = ({ placements }: DirectoryEntry, tier: string, instanceId: string): boolean =>
  placements.some((placement) => placement.tier === tier && placement.instance_id === instanceId)

/**
 * What each instance is asked to delete: what the directory lists for it, so that the list is put right. What is not
 * listed may lie anywhere: every instance is asked for its memory, and one for the store, which they share. A piece in
 * memory may lie in the store as well, also where that is not listed: not reported yet, or by an instance that is gone.
 */
const deletionsOf = (instances: readonly LmcacheInstance[], entries: readonly DirectoryEntry[]) => {
  const notStored = entries.filter((entry) => !instances.some(({ id }) => liesIn(entry, 'l2', id)))
  const unlisted = notStored.filter((entry) => !instances.some(({ id }) => liesIn(entry, 'l1', id)))
  return instances.flatMap(({ id, address }, index) => {
    const listed = (tier: string) => entries.filter((entry) => liesIn(entry, tier, id))
    const inMemory = [...listed('l1'), ...unlisted].map(({ key }) => key)
    const inStore = [...listed('l2'), ...(index === 0 ? notStored : [])].map(({ key }) => key)
    return [{ address, keys: inMemory, tier: 'l1' } as const, { address, keys: inStore, tier: 'l2' } as const]
  })
}
