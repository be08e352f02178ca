import type { KvRemoval, RemoveOutcome } from '../kv-port.ts'
import { deleteUnheld } from './delete-everywhere.ts'
import type { Parts } from './parts.ts'
import { parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Removes an artefact: its pins, the chunks that no other artefact needs, and what was kept of its tokens. */
export const remove = async (
  parts: Parts,
  { payload = '' }: KvRemoval,
  signal: AbortSignal,
): Promise<RemoveOutcome> => {
  if (payload === '') return { kind: 'removed' }
  const stored = parseStoredPrefix(payload)
  if (stored === undefined) return { kind: 'foreign' }
  try {
    await unpin(parts, stored, signal)
    if (!(await deleteUnheld(parts, stored, signal))) return { kind: 'busy', reason: 'still_there' }
    await parts.vault.delete(stored.artefactId)
    return { kind: 'removed' }
  } catch (error) {
    parts.log.debug('KV could not be removed yet', { err: error })
    return { kind: 'busy', reason: 'kv_store_unavailable' }
  }
}

/**
 * Done again when a removal is repeated, since nobody knows whether the first time was counted. At worst another artefact's chunks lose a pin
 * and may be evicted early: what may be deleted is the ledger's to say.
 */
const unpin = async (
  parts: Parts,
  { artefactId, modelRoot, salt }: StoredPrefix,
  signal: AbortSignal,
): Promise<void> => {
  const tokens = await parts.vault.get(artefactId)
  if (tokens !== undefined) await parts.lmcache.unpin({ modelRoot, salt, tokens }, signal)
}
