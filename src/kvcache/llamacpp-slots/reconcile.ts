import type { SessionKey } from '../../sessions/session-record.ts'
import type { SlotEntry } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import { artefactIdIn, isOfOtherEngine, isUnfinished } from './artefact.ts'
import { lookAtPod } from './look.ts'
import type { Parts } from './parts.ts'
import { isAccountedFor } from './slot-evidence.ts'
import { wipeSlot } from './wipe.ts'

/** What the sessions' store knows of artefacts. */
export interface Known {
  readonly isKnown: (artefactIds: readonly string[]) => Promise<ReadonlySet<string>>
  /** Told artefacts that are known, but that no pod can load any more. */
  readonly onUseless: (artefactIds: readonly string[]) => Promise<void>
}

/** Files that are being written for longer than this were left by an engine that died. */
const unfinishedGraceMs = 10 * 60_000
const podsAtATime = 8

/**
 * Removes files that no session and no removal knows, and empties slots of which the ledger cannot say whose KV they hold: all of them, once,
 * after the ledger was lost, and those in which a session's turn ran past the gateway. Resolves to how many files and slots that was. One fault does not keep it from the rest.
 */
export const reconcile = async (parts: Parts, { isKnown, onUseless }: Known, signal: AbortSignal): Promise<number> => {
  const counts = await Promise.all([
    safely(parts, 'orphaned files', () => removeOrphans(parts, { isKnown, onUseless }, signal)),
    safely(parts, 'unfinished files', () => removeUnfinished(parts, signal)),
    safely(parts, 'unknown slots', () => wipeUnknownSlots(parts, signal)),
  ])
  return counts.reduce((sum, count) => sum + count, 0)
}

const safely = async (parts: Parts, what: string, work: () => Promise<number>): Promise<number> => {
  try {
    return await work()
  } catch (err) {
    parts.log.warn('reconciling failed', { what, err })
    return 0
  }
}

const removeOrphans = async (parts: Parts, { isKnown, onUseless }: Known, signal: AbortSignal): Promise<number> => {
  const fingerprints = await fingerprintsOfAll(parts, signal)
  const isArtefact = (file: string): boolean => artefactIdIn(file) !== undefined
  let removed = 0
  for await (const files of parts.folder.olderThan(parts.limits.orphanGraceMs, isArtefact)) {
    if (signal.aborted) break
    const known = await isKnown(files.flatMap((file) => artefactIdIn(file) ?? []))
    const orphans = files.filter((file) => !known.has(artefactIdIn(file) ?? ''))
    removed += await removeFiles(parts, orphans)
    const useless = [...known].filter((id) => fingerprints !== undefined && isOfOtherEngine(id, fingerprints))
    if (useless.length > 0) await onUseless(useless)
  }
  return removed
}

/** Of all pods there are; undefined while one of them does not tell, since it may be the one that can load what the others cannot. */
const fingerprintsOfAll = async (parts: Parts, signal: AbortSignal): Promise<readonly string[] | undefined> => {
  const identities = await Promise.all(parts.pods().map((pod) => parts.identities.of(pod, signal)))
  const fingerprints = identities.flatMap((identity) =>
    identity.kind === 'answered' ? identity.value.fingerprint : [],
  )
  return fingerprints.length > 0 && fingerprints.length === identities.length ? fingerprints : undefined
}

const removeUnfinished = async (parts: Parts, signal: AbortSignal): Promise<number> => {
  let removed = 0
  for await (const files of parts.folder.olderThan(unfinishedGraceMs, isUnfinished)) {
    if (signal.aborted) break
    removed += await removeFiles(parts, files)
  }
  return removed
}

const removeFiles = async (parts: Parts, files: readonly string[]): Promise<number> => {
  const removed = await Promise.all(files.map((file) => parts.folder.remove(file)))
  return removed.filter(Boolean).length
}

const wipeUnknownSlots = async (parts: Parts, signal: AbortSignal): Promise<number> => {
  const entries = await parts.ledger.list()
  const configured = parts.pods()
  const gone = new Set(entries.map(({ pod }) => pod).filter((pod) => !configured.includes(pod)))
  const idleGone = [...gone].filter((pod) => !entries.some((entry) => entry.pod === pod && entry.inUse))
  await Promise.all(idleGone.map((pod) => parts.ledger.forgetPod(pod)))

  const known = new Map(entries.map((entry) => [`${entry.pod}|${entry.slot}`, entry]))
  let wiped = 0
  for (let start = 0; start < configured.length && !signal.aborted; start += podsAtATime) {
    const pods = configured.slice(start, start + podsAtATime)
    const counts = await Promise.all(pods.map((pod) => wipePod(parts, pod, { known, signal })))
    wiped += counts.reduce((sum, count) => sum + count, 0)
  }
  return wiped
}

const wipePod = async (
  parts: Parts,
  pod: string,
  { known, signal }: { readonly known: ReadonlyMap<string, SlotEntry>; readonly signal: AbortSignal },
): Promise<number> => {
  const view = await lookAtPod(parts, pod, signal)
  if (view.kind === 'failed') {
    parts.log.debug('a pod cannot be reconciled now', { pod, err: view.cause })
    return 0
  }
  let wiped = 0
  for (const seen of view.slots) {
    if (seen.busy || signal.aborted) continue
    const entry = known.get(`${pod}|${seen.id}`)
    const isStray = entry === undefined ? false : await noteStray(parts, { entry, seen, boot: view.boot })
    if (entry === undefined) parts.strays.sawIdle(pod, seen.id)
    if (entry?.needsWipe === false && !isStray) continue
    const outcome = await wipeSlot(parts, { pod, slot: seen.id, session: undefined }, signal)
    if (outcome.kind === 'wiped' && outcome.tokens > 0) wiped += 1
  }
  return wiped
}

/** Stands in the ledger for the session of a turn that no gateway saw. */
const unknownSession = 'a turn that no gateway saw' as SessionKey

/**
 * A turn that Envoy forwarded while no gateway was there ran in any slot, and its session does not know it: deleting the session would not find
 * that KV. So each slot is compared with the ledger after a start of the gateway, until it was seen idle once turns cannot have passed any more.
 */
const noteStray = async (
  parts: Parts,
  { entry, seen, boot }: { readonly entry: SlotEntry; readonly seen: SlotSnapshot; readonly boot: string },
): Promise<boolean> => {
  const { pod, slot, inUse, needsWipe } = entry
  if (inUse || parts.strays.isSettled(pod, slot)) return false
  parts.strays.sawIdle(pod, slot)
  if (needsWipe || isAccountedFor(entry, seen, boot)) return false
  // The list is older than the look: a turn may have come and gone in between.
  const now = (await parts.ledger.list()).find((other) => other.pod === pod && other.slot === slot)
  if (now === undefined || now.inUse || now.kind !== entry.kind || now.mark !== entry.mark) return false
  await parts.ledger.addTrace({ pod, slot, session: unknownSession })
  return true
}
