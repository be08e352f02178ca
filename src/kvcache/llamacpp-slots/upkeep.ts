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
  // Side by side: a store that is away keeps no engine from erasing.
  const erasing = removal.kind === 'session' ? eraseSession(parts, removal.session, signal) : undefined
  const [busy] = await Promise.all([erasing, artefact && parts.files.remove(artefact.file, signal)])
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
    const kept = await eraseSlot(parts, { pod, slot, session }, signal)
    return isOwn ? kept : undefined
  }
  const eraseIn = async (pod: string) => Promise.all((await parts.ledger.list(pod)).map((entry) => erase(pod, entry)))
  const pods = parts.knownPods()
  if (pods === undefined) return 'no pod is known'
  const reasons = await Promise.all(pods.map(eraseIn))
  return reasons.flat().find((reason) => reason !== undefined)
}

/** Erases an idle slot of `session`, or of unknown content. Resolves to why not, where it should have been erased. */
const eraseSlot = async (
  parts: Parts,
  { pod, slot, session }: { readonly pod: string; readonly slot: number; readonly session?: SessionKey },
  signal: AbortSignal,
): Promise<string | undefined> => {
  const place = { pod, slot, turnId: `erase-${randomUUID()}` }
  const leave = (why?: string): Promise<string | undefined> => releaseSlot(parts, place).then(() => why)
  const see = async () => (await look(parts, pod, signal)).slots.find(({ id }) => id === slot)
  try {
    // A turn whose lease ran out may still compute: what seizes its slot keeps its KV from being stored.
    if ((await see())?.busy === true) return 'the slot is busy'
    const known = await parts.ledger.seize({ ...place, leaseMs })
    if (known === undefined) return 'a turn uses the slot'
    parts.claims.add(place)
    const seen = await see()
    const isOwned = session !== undefined && known.owner === session
    if (seen === undefined || (!isOwned && isAccountedFor(known.content, seen))) return await leave()
    if (seen.busy) return await leave('the slot is busy')
    const end = await endInTime(parts, place, parts.client.erase(place), { signal })
    if (end === undefined) return 'the engine is late'
    if (end.kind !== 'done') throw end.cause
    const mark = markOf({ ...seen, tokens: seen.tokens === undefined ? undefined : 0 })
    await releaseSlot(parts, place, { tokens: 0, mark })
    return undefined
  } catch (cause) {
    return leave(`the slot was not erased: ${String(cause)}`)
  }
}

/**
 * Removes files that are unfinished or known to nobody, and erases idle slots whose content the ledger does not know:
 * of failed turns, of requests without a session, and all after the ledger was lost. A fault in one spares the others.
 */
export const sweep = async (parts: Parts, artefacts: KnownArtefacts, signal: AbortSignal): Promise<void> => {
  if (!(await parts.folder.isOurs())) return
  const logged = (what: string, part: Promise<void>): Promise<void> =>
    part.catch((err: unknown) => parts.log.warn('a part of the sweep failed', { what, err }))
  await Promise.all([
    logged('files', removeRemains(parts, artefacts, signal)),
    ...(parts.knownPods() ?? []).map((pod) => logged(`slots of ${pod}`, eraseUnknown(parts, pod, signal))),
  ])
}

/** Looks at some files, and goes on while it finds remains: so a sweep costs the same however much is stored. */
const removeRemains = async (parts: Parts, artefacts: KnownArtefacts, signal: AbortSignal): Promise<void> => {
  const { files, folder } = parts
  const fingerprints = await fingerprintsOfAll(parts, signal)
  for (;;) {
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
    if (remains.length === 0 || !(await folder.isStillOurs())) return
    await Promise.all(remains.map(({ file }) => files.delete(file)))
  }
}

/** Empty while a pod does not tell, or has no address yet: it may be the one that can load what the others cannot. */
const fingerprintsOfAll = async (parts: Parts, signal: AbortSignal): Promise<readonly string[]> => {
  const views = Promise.all(parts.pods().map((pod) => look(parts, pod, signal)))
  return (await views.catch(() => [])).map(({ fingerprint }) => fingerprint)
}

const eraseUnknown = async (parts: Parts, pod: string, signal: AbortSignal): Promise<void> => {
  // A pod that does not answer has a warning of its own.
  const { slots } = await look(parts, pod, signal).catch(() => ({ slots: [] }))
  const entries = new Map((await parts.ledger.list(pod)).map((entry) => [entry.slot, entry]))
  for (const seen of slots) {
    const entry = entries.get(seen.id)
    if (seen.busy || entry?.inUse === true || isAccountedFor(entry?.content, seen)) continue
    await eraseSlot(parts, { pod, slot: seen.id }, signal)
  }
}
