import { artefactIdIn, isOfOtherEngine, isUnfinished } from './artefact.ts'
import { lookAtPod } from './look.ts'
import type { Parts } from './parts.ts'
import { sessionKeyOfEngine } from './slot-evidence.ts'
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

/** Names under which the embedded engine writes a file before it is whole. */
const isEnginesTemporary = (file: string): boolean => /^\.[0-9a-f-]{36}\.part$/.test(file)

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
  const accept = (file: string): boolean => isUnfinished(file) || isEnginesTemporary(file)
  let removed = 0
  for await (const files of parts.folder.olderThan(unfinishedGraceMs, accept)) {
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

  const trusted = new Set(entries.filter(({ needsWipe }) => !needsWipe).map(({ pod, slot }) => `${pod}|${slot}`))
  let wiped = 0
  for (let start = 0; start < configured.length && !signal.aborted; start += podsAtATime) {
    const pods = configured.slice(start, start + podsAtATime)
    const counts = await Promise.all(pods.map((pod) => wipePod(parts, pod, { trusted, signal })))
    wiped += counts.reduce((sum, count) => sum + count, 0)
  }
  return wiped
}

const wipePod = async (
  parts: Parts,
  pod: string,
  { trusted, signal }: { readonly trusted: ReadonlySet<string>; readonly signal: AbortSignal },
): Promise<number> => {
  const view = await lookAtPod(parts, pod, signal)
  if (view.kind === 'failed') {
    parts.log.debug('a pod cannot be reconciled now', { pod, err: view.cause })
    return 0
  }
  let wiped = 0
  for (const { id, busy, session } of view.slots) {
    if (busy || signal.aborted) continue
    const isStray = typeof session === 'string' && (await noteStray(parts, { pod, slot: id, engineSession: session }))
    if (trusted.has(`${pod}|${id}`) && !isStray) continue
    const outcome = await wipeSlot(parts, { pod, slot: id, session: undefined }, signal)
    if (outcome.kind === 'wiped' && outcome.tokens > 0) wiped += 1
  }
  return wiped
}

/**
 * A turn that passed while no gateway was there ran in any slot. Where the engine tells whose it was, and that session does not own the slot,
 * nobody could ever use that KV, nor would deleting the session find it.
 */
const noteStray = async (
  parts: Parts,
  { pod, slot, engineSession }: { readonly pod: string; readonly slot: number; readonly engineSession: string },
): Promise<boolean> => {
  const session = sessionKeyOfEngine(engineSession)
  const own = await parts.ledger.slotsOf(session)
  if (own.some((place) => place.pod === pod && place.slot === slot)) return false
  await parts.ledger.addTrace({ pod, slot, session })
  return true
}
