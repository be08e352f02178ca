import type { OffloadOutcome, OffloadRequest } from '../kv-connector.ts'
import type { ActionOutcome, SavedSlot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import { artefactIdOf, fileOf, formatPayload, partOf } from './artefact.ts'
import { parseClaim, type SlotClaim } from './claim.ts'
import { leaseMs } from './open-claims.ts'
import { type Parts, releaseAfter, releaseSlot } from './parts.ts'
import { isFromTurn, markOf } from './slot-evidence.ts'

/** What is told about a turn's KV, and what its slot holds; undefined: that is unknown. */
interface Ending {
  readonly outcome: OffloadOutcome
  readonly content?: SlotContent
}

/** Saves what the turn left in its slot, if it is certain that the turn left it, and releases the slot in any case. */
export const offload = async (parts: Parts, request: OffloadRequest): Promise<OffloadOutcome> => {
  const { turn, totalTokens } = request
  const claim = parseClaim(request.claim)
  if ('reason' in claim) return { kind: 'none', reason: claim.reason }
  const place = { pod: claim.pod, slot: claim.slot, turnId: turn.turnId }
  if (claim.pod !== turn.pod || (totalTokens !== undefined && totalTokens < parts.minTokens)) {
    await releaseSlot(parts, place)
    return { kind: 'none', reason: claim.pod === turn.pod ? 'too_short' : 'served_elsewhere' }
  }
  try {
    const [isHeld = false] = await parts.ledger.renew([place], { leaseMs, saving: true })
    if (!isHeld) {
      parts.claims.drop(turn.turnId)
      return { kind: 'none', reason: 'not_verified' }
    }
    parts.claims.add(place)
    return await save(parts, request, claim)
  } catch (cause) {
    await releaseSlot(parts, place)
    return { kind: 'none', reason: 'offload_failed', cause }
  }
}

/** A save changes nothing in the slot, so the slot is looked at only afterwards: was the last that ran there this turn, the file is of it. */
const save = async (parts: Parts, request: OffloadRequest, claim: SlotClaim): Promise<OffloadOutcome> => {
  const { turn, signal } = request
  const { fingerprint } = claim
  const place = { pod: claim.pod, slot: claim.slot, turnId: turn.turnId }
  const artefactId = artefactIdOf(turn, fingerprint)
  const file = fileOf(artefactId)
  await request.announce({ artefactId, payload: formatPayload({ file, fingerprint, content: undefined }) })
  const saved = await parts.client.save(claim, partOf(file), signal)
  if (saved.kind === 'late') {
    releaseAfter(
      parts,
      place,
      saved.end.finally(() => parts.files.delete(partOf(file))),
    )
    return { kind: 'none', reason: 'offload_failed', cause: new Error('the engine is late with saving the slot') }
  }
  const { outcome, content } = await keep(parts, request, { claim, artefactId, saved })
  if (outcome.kind !== 'stored') await discard(parts, file)
  await releaseSlot(parts, place, content)
  return outcome
}

type EndedSave = Exclude<ActionOutcome<SavedSlot>, { kind: 'late' }>

/** Gives the file its name. */
const keep = async (
  parts: Parts,
  { totalTokens, signal }: OffloadRequest,
  save: { readonly claim: SlotClaim; readonly artefactId: string; readonly saved: EndedSave },
): Promise<Ending> => {
  const { claim, artefactId, saved } = save
  if (saved.kind !== 'done') return none('offload_failed', saved.cause)
  const { tokens, bytes } = saved.value
  const seen = await lookAt(parts, claim, signal)
  const isOfTurn = seen !== undefined && isFromTurn({ ...claim, totalTokens }, seen)
  if (!isOfTurn || saved.value.slot !== claim.slot || tokens !== seen.tokens) return none('not_verified')
  const content = { tokens, mark: markOf(seen) }
  if (tokens < parts.minTokens) return { ...none('too_short'), content }
  if (parts.maxArtefactBytes !== undefined && bytes > parts.maxArtefactBytes) {
    parts.log.warn('KV is larger than the store takes', { pod: claim.pod, bytes, maxBytes: parts.maxArtefactBytes })
    return { ...none('too_large'), content }
  }
  const file = fileOf(artefactId)
  try {
    const sha256 = await parts.files.keep(file, { bytes, signal })
    if (sha256 === undefined) throw new Error('the file is not as long as the engine said')
    const payload = formatPayload({ file, fingerprint: claim.fingerprint, content: { bytes, sha256 } })
    return { outcome: { kind: 'stored', artefactId, payload, tokens, bytes }, content: { ...content, artefactId } }
  } catch (cause) {
    return { ...none('offload_failed', new Error('the file cannot be kept', { cause })), content }
  }
}

const lookAt = async (
  { engines }: Parts,
  { pod, slot }: SlotClaim,
  signal: AbortSignal,
): Promise<SlotSnapshot | undefined> => {
  const view = await engines.look(pod, signal)
  return view.kind === 'answered' ? view.value.slots.find(({ id }) => id === slot) : undefined
}

/** What is left behind all the same goes with the announced artefact, or as an orphan. */
const discard = async (parts: Parts, file: string): Promise<void> => {
  try {
    await parts.files.delete(partOf(file))
  } catch (err) {
    parts.log.warn('an unfinished file could not be removed', { file, err })
  }
}

const none = (reason: string, cause?: unknown): Ending => ({
  outcome: { kind: 'none', reason, ...(cause === undefined ? {} : { cause }) },
})
