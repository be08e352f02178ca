import type { KvRemoval, RemoveOutcome } from '../kv-connector.ts'
import { tokensFromBytes } from '../vault/token-bytes.ts'
import { deleteEverywhere, purgeSalt } from './delete-everywhere.ts'
import type { Parts } from './parts.ts'
import { objectKeysOf, parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Removes an artefact: its pins, the chunks that no other artefact needs, and what was kept of its tokens. */
export const remove = async (parts: Parts, removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome> => {
  const stored = removal.payload === undefined ? undefined : parseStoredPrefix(removal.payload)
  if (stored === undefined) return { kind: 'removed' }
  try {
    return await removeStored(parts, stored, removal.kind, signal)
  } catch (error) {
    parts.log.debug('KV could not be removed yet', { err: error })
    return { kind: 'busy', reason: 'kv_store_unavailable' }
  }
}

const removeStored = async (
  parts: Parts,
  stored: StoredPrefix,
  kind: KvRemoval['kind'],
  signal: AbortSignal,
): Promise<RemoveOutcome> => {
  const holder = { salt: stored.salt, name: stored.artefactId }
  const { unheld, lastOfSalt } = await parts.ledger.release(holder)
  await unpin(parts, stored, signal)
  if (!(await deleteEverywhere(parts, objectKeysOf(stored, unheld), signal)))
    return { kind: 'busy', reason: 'still_there' }
  // A session's own salt goes with it, and so does what has no name.
  if (kind === 'session' && lastOfSalt && stored.isOwnSalt && !(await purgeSalt(parts, stored.salt, signal))) {
    return { kind: 'busy', reason: 'still_there' }
  }
  await parts.vault.delete([stored.artefactId])
  await parts.ledger.deleted(holder)
  return { kind: 'removed' }
}

/**
 * Done again when a removal is repeated, since nobody knows whether the first time was counted. At worst another artefact's chunks lose a pin
 * and may be evicted early: what may be deleted is the ledger's to say.
 */
const unpin = async (parts: Parts, stored: StoredPrefix, signal: AbortSignal): Promise<void> => {
  const key = parts.unpinKeys.open(stored.unpinKey, stored.artefactId)
  const content = key === undefined ? undefined : await parts.vault.get(stored.artefactId, key)
  const tokens = content === undefined ? undefined : tokensFromBytes(content)
  if (tokens === undefined) return
  await parts.lmcache.unpin({ modelRoot: stored.modelRoot, salt: stored.salt, tokens }, signal)
}
