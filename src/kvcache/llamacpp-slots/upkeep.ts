import { randomUUID } from 'node:crypto'
import type { SessionKey } from '../../sessions/session-record.ts'
import type { KvConnector, KvRemoval, RemoveOutcome } from '../kv-connector.ts'
import { artefactIdIn, isOfOtherEngine, isUnfinished, parsePayload } from './artefact.ts'
import { leaseMs } from './open-claims.ts'
import { type Parts, releaseAfter, releaseSlot } from './parts.ts'
import { isAccountedFor, markOf } from './slot-evidence.ts'

/** Files that are being written for longer than this were left by an engine that died. */
const unfinishedGraceMs = 10 * 60_000

/** Removes an artefact's file, and a session's KV from every slot in which it may lie. */
export const remove = async (parts: Parts, removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome> => {
  const artefact = removal.payload === undefined ? undefined : parsePayload(removal.payload)
  try {
    if (artefact !== undefined) await parts.files.remove(artefact.file, signal)
    if (removal.kind === 'session') {
      const busy = await eraseSession(parts, removal.session, signal)
      if (busy !== undefined) return { kind: 'busy', reason: busy }
    }
    return removal.payload !== undefined && artefact === undefined ? { kind: 'foreign' } : { kind: 'removed' }
  } catch (err) {
    parts.log.warn('KV could not be removed', { kind: removal.kind, err })
    return { kind: 'busy', reason: 'the folder or the ledger does not answer' }
  }
}

/** Also erases slots with unknown content, in which a failed turn of the session may have run. Resolves to why something is left. */
const eraseSession = async (parts: Parts, session: SessionKey, signal: AbortSignal): Promise<string | undefined> => {
  const outcomes = await Promise.all(
    parts.pods().map(async (pod) => {
      const entries = await parts.ledger.list(pod)
      const concerned = entries.filter(
        ({ owner, user, content, inUse }) => [owner, user].includes(session) || (content === undefined && !inUse),
      )
      return Promise.all(concerned.map(({ slot }) => eraseSlot(parts, { pod, slot, session }, signal)))
    }),
  )
  return outcomes.flat().find(({ busy }) => busy !== undefined)?.busy
}

/** Erased tokens, and why the slot was not erased, if it should have been. */
interface Erased {
  readonly tokens: number
  readonly busy?: string
}

/** Erases an idle slot that belongs to `session`, or whose content the ledger does not know. Safe to repeat. */
const eraseSlot = async (
  parts: Parts,
  address: { readonly pod: string; readonly slot: number; readonly session: SessionKey | undefined },
  signal: AbortSignal,
): Promise<Erased> => {
  const { pod, slot, session } = address
  const place = { pod, slot, turnId: `erase-${randomUUID()}` }
  const known = await parts.ledger.seize({ ...place, leaseMs })
  if (known === undefined) return { tokens: 0, busy: 'a turn uses the slot' }
  parts.claims.add(place)
  const leave = async (busy?: string): Promise<Erased> => {
    await releaseSlot(parts, place)
    return busy === undefined ? { tokens: 0 } : { tokens: 0, busy }
  }
  const view = await parts.engines.look(pod, signal)
  if (view.kind === 'failed') return leave('the pod does not answer')
  const seen = view.value.slots.find(({ id }) => id === slot)
  if (seen?.busy === true) return leave('the slot is busy')
  const isOwned = session !== undefined && known.owner === session
  if (seen === undefined || (!isOwned && isAccountedFor(known.content, seen))) return leave()
  const end = await parts.client.erase(place, signal)
  if (end.kind === 'late') {
    releaseAfter(parts, place, end.end)
    return { tokens: 0, busy: 'the engine is late' }
  }
  if (end.kind !== 'done') return leave('the engine did not erase the slot')
  const mark = markOf({ ...seen, tokens: seen.tokens && 0 })
  await releaseSlot(parts, place, { tokens: 0, mark })
  return { tokens: end.value.tokens }
}

/**
 * Removes files that no session and no removal knows, and erases idle slots whose content the ledger does not know: those of failed turns, of
 * requests without a session, and all after the ledger was lost. Resolves to how many files and slots that was. A fault in one part does not
 * prevent the others.
 */
export const reconcile = async (
  parts: Parts,
  [isKnown, signal, onUseless = async () => {}]: Parameters<KvConnector['reconcile']>,
): Promise<number> => {
  const work = {
    'orphaned files': removeOrphans(parts, { isKnown, onUseless }, signal),
    'unfinished files': removeFiles(parts, unfinishedGraceMs, isUnfinished, async (files) => files),
    ...Object.fromEntries(parts.pods().map((pod) => [`slots of ${pod}`, eraseUnknown(parts, pod, signal)])),
  }
  const counts = Object.entries(work).map(([what, count]) =>
    count.catch((err: unknown) => {
      parts.log.warn('a sweep failed', { what, err })
      return 0
    }),
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

const removeFiles = async (
  { files }: Parts,
  ageMs: number,
  accept: (file: string) => boolean,
  choose: (files: readonly string[]) => Promise<readonly string[]>,
): Promise<number> => {
  let removed = 0
  for await (const batch of files.olderThan(ageMs, accept)) {
    const chosen = await choose(batch)
    await Promise.all(chosen.map((file) => files.delete(file)))
    removed += chosen.length
  }
  return removed
}

interface Known {
  readonly isKnown: (artefactIds: readonly string[]) => Promise<ReadonlySet<string>>
  readonly onUseless: (artefactIds: readonly string[]) => Promise<void>
}

const removeOrphans = async (parts: Parts, { isKnown, onUseless }: Known, signal: AbortSignal): Promise<number> => {
  const views = await Promise.all(parts.pods().map((pod) => parts.engines.look(pod, signal)))
  const fingerprints = views.flatMap((view) => (view.kind === 'answered' ? view.value.fingerprint : []))
  // A pod that does not tell may be the one that can load what the others cannot.
  const allTold = fingerprints.length > 0 && fingerprints.length === views.length
  const isArtefact = (file: string): boolean => artefactIdIn(file) !== undefined
  return removeFiles(parts, parts.orphanGraceMs, isArtefact, async (files) => {
    if (signal.aborted) return []
    const known = await isKnown(files.flatMap((file) => artefactIdIn(file) ?? []))
    const useless = [...known].filter((id) => allTold && isOfOtherEngine(id, fingerprints))
    if (useless.length > 0) await onUseless(useless)
    return files.filter((file) => !known.has(artefactIdIn(file) ?? ''))
  })
}

const eraseUnknown = async (parts: Parts, pod: string, signal: AbortSignal): Promise<number> => {
  const view = await parts.engines.look(pod, signal)
  if (view.kind === 'failed') {
    parts.log.debug('the slots of a pod cannot be swept now', { pod, err: view.cause })
    return 0
  }
  const entries = new Map((await parts.ledger.list(pod)).map((entry) => [entry.slot, entry]))
  let erased = 0
  for (const seen of view.value.slots) {
    const entry = entries.get(seen.id)
    if (seen.busy || entry?.inUse === true || isAccountedFor(entry?.content, seen)) continue
    const { tokens } = await eraseSlot(parts, { pod, slot: seen.id, session: undefined }, signal)
    if (tokens > 0) erased += 1
  }
  return erased
}
