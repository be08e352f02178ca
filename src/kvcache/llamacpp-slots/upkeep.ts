import { randomUUID } from 'node:crypto'
import { withinLimit } from '../../async/deadline.ts'
import type { SessionKey } from '../../sessions/session-record.ts'
import type { KnownArtefacts, KvRemoval, RemoveOutcome } from '../kv-connector.ts'
import type { SlotEntry } from '../slots/slot-ledger.ts'
import { artefactIdIn, isOfOtherEngine, isUnfinished, parsePayload } from './artefact.ts'
import { leaseMs } from './open-claims.ts'
import { endInTime, type Parts, releaseSlot } from './parts.ts'
import { isAccountedFor, markOf } from './slot-evidence.ts'

/** Files that are being written for longer than this were left by an engine that died. */
const unfinishedGraceMs = 10 * 60_000
/** Removals and expiries wait for a sweep: an engine that does not answer soon is left to the next one. */
const lookMs = 1_000

const look = ({ engines }: Parts, pod: string, signal: AbortSignal) =>
  withinLimit(lookMs, (limited) => engines.look(pod, limited), signal)

/** Removes an artefact's file, and a session's KV from every slot. @throws when folder, ledger or an engine fail */
export const remove = async (parts: Parts, removal: KvRemoval, signal: AbortSignal): Promise<RemoveOutcome> => {
  const artefact = removal.payload === undefined ? undefined : parsePayload(removal.payload)
  if (artefact !== undefined) await parts.files.remove(artefact.file, signal)
  const busy = removal.kind === 'session' ? await eraseSession(parts, removal.session, signal) : undefined
  if (busy !== undefined) return { kind: 'busy', reason: busy }
  return removal.payload !== undefined && artefact === undefined ? { kind: 'foreign' } : { kind: 'removed' }
}

/**
 * Resolves to why KV of the session is left. Also erases slots of unknown content, where a failed turn of it may have
 * run: no turn starts from what lies there, so that a slot that cannot be erased now is left to the next sweep.
 */
const eraseSession = async (parts: Parts, session: SessionKey, signal: AbortSignal): Promise<string | undefined> => {
  const erase = async (pod: string, { slot, owner, user, content, inUse }: SlotEntry): Promise<string | undefined> => {
    const isOwn = [owner, user].includes(session)
    if (!isOwn && (content !== undefined || inUse)) return undefined
    const erased = await eraseSlot(parts, { pod, slot, session }, signal)
    return isOwn && 'busy' in erased ? erased.busy : undefined
  }
  const eraseIn = async (pod: string) => Promise.all((await parts.ledger.list(pod)).map((entry) => erase(pod, entry)))
  const reasons = await Promise.all(parts.pods().map(eraseIn))
  return reasons.flat().find((reason) => reason !== undefined)
}

/**
 * Erases an idle slot that belongs to `session`, or whose content the ledger does not know. Safe to repeat. Resolves to
 * the erased tokens, or to why the slot was not erased although it should have been.
 */
const eraseSlot = async (
  parts: Parts,
  { pod, slot, session }: { readonly pod: string; readonly slot: number; readonly session?: SessionKey },
  signal: AbortSignal,
): Promise<{ readonly tokens: number } | { readonly busy: string }> => {
  const place = { pod, slot, turnId: `erase-${randomUUID()}` }
  const known = await parts.ledger.seize({ ...place, leaseMs })
  if (known === undefined) return { busy: 'a turn uses the slot' }
  parts.claims.add(place)
  const leave = <T>(erased: T): Promise<T> => releaseSlot(parts, place).then(() => erased)
  try {
    const { slots } = await look(parts, pod, signal)
    const seen = slots.find(({ id }) => id === slot)
    const isOwned = session !== undefined && known.owner === session
    if (seen === undefined || (!isOwned && isAccountedFor(known.content, seen))) return await leave({ tokens: 0 })
    if (seen.busy) return await leave({ busy: 'the slot is busy' })
    const end = await endInTime(parts, place, parts.client.erase(place), { signal })
    if (end === undefined) return { busy: 'the engine is late' }
    if (end.kind !== 'done') throw end.cause
    const mark = markOf({ ...seen, tokens: seen.tokens === undefined ? undefined : 0 })
    await releaseSlot(parts, place, { tokens: 0, mark })
    return { tokens: end.value.tokens }
  } catch (cause) {
    return leave({ busy: `the slot was not erased: ${String(cause)}` })
  }
}

/**
 * Removes files that are unfinished, or that no session and no removal knows. Erases idle slots whose content the
 * ledger does not know: those of failed turns, of requests without a session, and all after the ledger was lost.
 * Resolves to how many files and slots that was. A fault in one part does not prevent the others.
 */
export const sweep = async (parts: Parts, artefacts: KnownArtefacts, signal: AbortSignal): Promise<number> => {
  if (!(await parts.folder.isOurs())) return 0
  const orZero = (what: string, count: Promise<number>): Promise<number> =>
    count.catch((err: unknown) => {
      parts.log.warn('a part of the sweep failed', { what, err })
      return 0
    })
  const counts = await Promise.all([
    orZero('files', removeRemains(parts, artefacts, signal)),
    ...parts.pods().map((pod) => orZero(`slots of ${pod}`, eraseUnknown(parts, pod, signal))),
  ])
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Looks at some files, and goes on while it finds remains: so a sweep costs the same however much is stored. */
const removeRemains = async (parts: Parts, artefacts: KnownArtefacts, signal: AbortSignal): Promise<number> => {
  const { files, folder } = parts
  const fingerprints = await fingerprintsOfAll(parts, signal)
  for (let removed = 0; ; ) {
    signal.throwIfAborted()
    const seen = await files.next()
    const remains = seen.filter(({ file, ageMs }) => isUnfinished(file) && ageMs >= unfinishedGraceMs)
    const stored = seen.filter(({ file, ageMs }) => artefactIdIn(file) !== undefined && ageMs >= parts.orphanGraceMs)
    if (stored.length > 0) {
      const known = await artefacts.known(stored.flatMap(({ file }) => artefactIdIn(file) ?? []))
      remains.push(...stored.filter(({ file }) => !known.has(artefactIdIn(file) ?? '')))
      const useless = [...known].filter((id) => fingerprints.length > 0 && isOfOtherEngine(id, fingerprints))
      if (useless.length > 0) await artefacts.forget(useless)
    }
    if (remains.length === 0 || !(await folder.isStillOurs())) return removed
    await Promise.all(remains.map(({ file }) => files.delete(file)))
    removed += remains.length
  }
}

/** Empty while a pod does not tell: it may be the one that can load what the others cannot. */
const fingerprintsOfAll = async (parts: Parts, signal: AbortSignal): Promise<readonly string[]> => {
  const views = Promise.all(parts.pods().map((pod) => look(parts, pod, signal)))
  return (await views.catch(() => [])).map(({ fingerprint }) => fingerprint)
}

const eraseUnknown = async (parts: Parts, pod: string, signal: AbortSignal): Promise<number> => {
  // A pod that does not answer has a warning of its own.
  const { slots } = await look(parts, pod, signal).catch(() => ({ slots: [] }))
  const entries = new Map((await parts.ledger.list(pod)).map((entry) => [entry.slot, entry]))
  let erased = 0
  for (const seen of slots) {
    const entry = entries.get(seen.id)
    if (seen.busy || entry?.inUse === true || isAccountedFor(entry?.content, seen)) continue
    const outcome = await eraseSlot(parts, { pod, slot: seen.id }, signal)
    if ('tokens' in outcome && outcome.tokens > 0) erased += 1
  }
  return erased
}
